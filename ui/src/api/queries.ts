/** What the program knows, cached: the one copy of its data in the window. A `Changed` event makes all of it stale. */
import {
  keepPreviousData,
  QueryClient,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/vue-query';
import { computed, onScopeDispose, toValue } from 'vue';
import type { MaybeRefOrGetter } from 'vue';

import type { LoginForm, Preferences, TaskStateView } from './bindings';
import { host } from './host';

/** Rows per page; a page is one query of the store. */
const PAGE = 100;
/** The lease countdown and the lights are re-read even if a nudge was missed. */
const OVERVIEW_EVERY_MS = 5_000;

export interface TaskFilter {
  text: string;
  states: TaskStateView[];
}

const keys = {
  live: ['live'] as const,
  overview: ['live', 'overview'] as const,
  tasks: (filter: TaskFilter) => ['live', 'tasks', filter] as const,
  task: (id: number | null) => ['live', 'task', id] as const,
  boot: ['boot'] as const,
  image: (id: number) => ['image', id] as const,
  preferences: ['preferences'] as const,
  phoneAddress: ['phone-address'] as const,
};

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      // The program is on this machine: being offline is no reason to wait, and it retries by itself what is worth it.
      queries: { networkMode: 'always', retry: false, refetchOnWindowFocus: false, staleTime: 1_000 },
      mutations: { networkMode: 'always', retry: false },
    },
  });
}

/** Data is `true` once the program runs. */
export function useBoot() {
  return useQuery({
    queryKey: keys.boot,
    queryFn: async () => {
      await host.boot();
      return true;
    },
    staleTime: Infinity,
  });
}

/** Makes live data stale on every nudge, as long as the calling component is there. */
export function useChangeFeed(): void {
  const client = useQueryClient();
  let stop: (() => void) | null = null;
  let gone = false;
  void host
    .onChanged(() => void client.invalidateQueries({ queryKey: keys.live }))
    .then((unlisten) => {
      if (gone) unlisten();
      else stop = unlisten;
    });
  onScopeDispose(() => {
    gone = true;
    stop?.();
  });
}

export function useOverview() {
  return useQuery({
    queryKey: keys.overview,
    queryFn: host.overview,
    refetchInterval: OVERVIEW_EVERY_MS,
    shallow: true,
  });
}

export function useTaskList(filter: MaybeRefOrGetter<TaskFilter>) {
  return useInfiniteQuery({
    queryKey: computed(() => keys.tasks(toValue(filter))),
    queryFn: ({ pageParam }) => {
      const { text, states } = toValue(filter);
      return host.taskList({ text: text === '' ? null : text, states, cursor: pageParam, limit: PAGE });
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    shallow: true,
  });
}

export function useTaskDetail(id: MaybeRefOrGetter<number>) {
  return useQuery({
    queryKey: computed(() => keys.task(toValue(id))),
    queryFn: () => host.taskDetail(toValue(id)),
    shallow: true,
  });
}

/** `wanted` turns true when the picture comes into view. */
export function useArtifactImage(id: MaybeRefOrGetter<number>, wanted: MaybeRefOrGetter<boolean>) {
  return useQuery({
    queryKey: computed(() => keys.image(toValue(id))),
    queryFn: () => host.artifactImage(toValue(id)),
    enabled: computed(() => toValue(wanted)),
    // A picture never changes; it is large, so it goes soon after its task is closed.
    staleTime: Infinity,
    gcTime: 30_000,
    shallow: true,
  });
}

/** Asked only once the program runs. */
export function usePreferences(running: MaybeRefOrGetter<boolean>) {
  return useQuery({
    queryKey: keys.preferences,
    queryFn: host.preferences,
    enabled: computed(() => toValue(running)),
    staleTime: Infinity,
  });
}

export function useSetPreferences() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (preferences: Preferences) => host.setPreferences(preferences),
    // Shown at once; the store's answer follows.
    onMutate: (preferences) => client.setQueryData(keys.preferences, preferences),
    onSettled: () => client.invalidateQueries({ queryKey: keys.preferences }),
  });
}

export function usePhoneAddress() {
  return useQuery({ queryKey: keys.phoneAddress, queryFn: host.phoneAddress });
}

function useLiveMutation<V>(mutationFn: (value: V) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({ mutationFn, onSettled: () => client.invalidateQueries({ queryKey: keys.live }) });
}

export const useStartWork = () => useLiveMutation<void>(() => host.startWork());
export const useStopWork = () => useLiveMutation<void>(() => host.stopWork());
export const useLogin = () => useLiveMutation<LoginForm>((form) => host.login(form));
export const useLogout = () => useLiveMutation<void>(() => host.logout());
export const useRecollect = () => useLiveMutation<number>((id) => host.recollect(id));

export function useSetPhoneAddress() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (address: string) => host.setPhoneAddress(address),
    onSettled: async () => {
      await client.invalidateQueries({ queryKey: keys.phoneAddress });
      await client.invalidateQueries({ queryKey: keys.live });
    },
  });
}
