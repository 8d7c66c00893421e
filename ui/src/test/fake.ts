/** A program that is not there: answers the pages' questions from sample data, through the real `host.ts`. */
import { emit } from '@tauri-apps/api/event';
import { mockIPC } from '@tauri-apps/api/mocks';

import type { Overview, Preferences, Problem, TaskDetail, TaskItem, TaskQuery, TaskStateView } from '../api/bindings';
import { TASK_STATES } from '../features/tasks/look';
import * as sample from './sample';

export interface Fake {
  overview: Overview;
  preferences: Preferences;
  items: TaskItem[];
  detail: (id: number) => TaskDetail;
  phoneAddress: string;
  /** Command name to the problem it answers with. */
  refuse: Map<string, Problem>;
  /** Every command asked, in order. */
  asked: { command: string; args: Record<string, unknown> }[];
  changed: () => Promise<void>;
}

/** A phone screen as a picture, so that thumbnails have something to show. */
function picture(step: number): string {
  const svg = `<svg xmlns='http://www.w3.org/2000/svg' width='540' height='1200'><rect width='540' height='1200' fill='#f4f4f4'/><rect width='540' height='540' fill='hsl(${step * 47} 60% 75%)'/><text x='40' y='640' font-size='48' fill='#e02e24'>¥39.9</text><rect x='40' y='700' width='460' height='28' fill='#ccc'/><rect x='40' y='750' width='360' height='28' fill='#ddd'/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function page(items: readonly TaskItem[], query: TaskQuery) {
  const text = query.text?.toLowerCase() ?? '';
  const found = items.filter(
    (item) =>
      (query.states.length === 0 || query.states.includes(item.state)) &&
      [item.title, item.goodsId, item.remoteTaskId].some((part) => part?.toLowerCase().includes(text)),
  );
  const start = query.cursor === null ? 0 : Number(query.cursor);
  const end = start + query.limit;
  return { items: found.slice(start, end), next: end < found.length ? String(end) : null };
}

const counts = (items: readonly TaskItem[]) =>
  TASK_STATES.map((state: TaskStateView) => ({ state, count: items.filter((item) => item.state === state).length }));

export function installFake(over: Partial<Fake> = {}): Fake {
  const items = over.items ?? sample.items(240, Date.now());
  const running = items.find((item) => item.state === 'running');
  const fake: Fake = {
    overview: sample.overview({
      counts: counts(items),
      total: items.length,
      outboxWaiting: items.filter((item) => item.state === 'result_pending').length,
      current: running
        ? {
            taskId: running.id,
            title: running.title,
            goodsId: running.goodsId,
            step: running.step,
            leaseLeftMs: 83_000,
          }
        : null,
    }),
    preferences: sample.preferences(),
    items,
    detail: (id) => {
      const item = items.find((row) => row.id === id) ?? sample.item({ id });
      const read = item.priceCent !== null;
      const full = sample.detail({ item });
      return read
        ? full
        : { ...full, goods: null, outbox: [], runs: item.errorCode === null ? [] : full.runs.slice(1) };
    },
    phoneAddress: '192.168.0.20:5555',
    refuse: new Map(),
    asked: [],
    changed: () => emit('changed', { revision: 1 }),
    ...over,
  };

  const answer = (command: string, args: Record<string, unknown>): unknown => {
    fake.asked.push({ command, args });
    const refusal = fake.refuse.get(command);
    if (refusal) throw refusal;
    switch (command) {
      case 'overview':
        return fake.overview;
      case 'task_list':
        return page(fake.items, args.query as TaskQuery);
      case 'task_detail':
        return fake.detail(args.id as number);
      case 'artifact_image':
        return picture(args.id as number);
      case 'preferences':
        return fake.preferences;
      case 'set_preferences':
        fake.preferences = args.preferences as Preferences;
        return null;
      case 'phone_address':
        return fake.phoneAddress;
      case 'start_work':
        fake.overview = { ...fake.overview, work: 'running' };
        return null;
      case 'stop_work':
        fake.overview = { ...fake.overview, work: 'stopped', current: null };
        return null;
      default:
        return null;
    }
  };
  // What crosses the bridge is copied, as it is in the window.
  mockIPC((command, args) => structuredClone(answer(command, { ...(args as Record<string, unknown>) })), {
    shouldMockEvents: true,
  });
  return fake;
}
