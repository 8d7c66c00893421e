/** The window's clock: one timer however many components watch it. For showing only; nothing is decided by it. */
import { onScopeDispose, readonly, ref } from 'vue';
import type { Ref } from 'vue';

const now = ref(Date.now());
let watchers = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** Milliseconds since 1970, once a second. */
export function useNow(): Readonly<Ref<number>> {
  now.value = Date.now();
  if (watchers++ === 0) timer = setInterval(() => (now.value = Date.now()), 1000);
  onScopeDispose(() => {
    if (--watchers === 0) clearInterval(timer);
  });
  return readonly(now);
}
