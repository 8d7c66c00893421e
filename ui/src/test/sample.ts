/** Sample data for tests and for `npm run dev` in a browser. All of it is made up. */
import type {
  ArtifactView,
  GoodsView,
  Light,
  Overview,
  Preferences,
  Problem,
  SkuView,
  TaskDetail,
  TaskItem,
  TaskStateView,
} from '../api/bindings';
import { problemFromCode } from '../api/host';

const MINUTE = 60_000;
export const NOW = Date.parse('2026-03-01T04:00:00Z');

const at = (minutesAgo: number, now = NOW) => new Date(now - minutesAgo * MINUTE).toISOString();

export const problem = (code: string, detail = ''): Problem => problemFromCode(code, detail);

const fine = (subject: string): Light => ({ level: 'ok', subject, problem: null });

const titles = [
  '加厚法兰绒四件套双面绒秋冬款床上用品珊瑚绒被套床单 北欧简约',
  '大容量保温杯316不锈钢便携泡茶杯',
  '儿童防滑拖鞋居家软底',
  '304不锈钢厨房沥水架双层碗碟收纳架台面多功能置物架',
  null,
  '纯棉短袖T恤男款宽松重磅 250g 圆领打底衫',
];
const states: TaskStateView[] = [
  'running',
  'claimed',
  'succeeded',
  'succeeded',
  'manual_review',
  'failed',
  'retry_wait',
  'result_pending',
  'cancelled',
  'succeeded',
];
const errorOf: Partial<Record<TaskStateView, string>> = {
  manual_review: 'RISK_WALL',
  failed: 'GOODS_SOLD_OUT',
  retry_wait: 'NETWORK_PAGE',
};
const stepOf: Partial<Record<TaskStateView, string>> = {
  running: 'collect_skus',
  manual_review: 'open_goods',
  failed: 'read_goods',
  retry_wait: 'open_goods',
};

export function item(over: Partial<TaskItem> = {}): TaskItem {
  return {
    id: 1,
    remoteTaskId: 'demo-collect-0001',
    taskType: 'collect',
    executionMode: 'dry_run',
    title: titles[0] ?? null,
    goodsId: '700000000001',
    targetColor: null,
    targetSize: null,
    priceCent: 3990,
    quantity: null,
    state: 'succeeded',
    step: null,
    errorCode: null,
    errorMessage: null,
    receivedAt: at(14),
    updatedAt: at(3),
    ...over,
  };
}

export function items(count: number, now = NOW): TaskItem[] {
  return Array.from({ length: count }, (_, index) => {
    const state = states[index % states.length] ?? 'claimed';
    const code = errorOf[state] ?? null;
    const read = state === 'succeeded' || state === 'result_pending' || state === 'running';
    return item({
      id: count - index,
      remoteTaskId: `019571f2-7c1e-7a30-9b1d-${String(count - index).padStart(12, '0')}`,
      taskType: index % 7 === 6 ? 'purchase' : 'collect',
      title: titles[index % titles.length] ?? null,
      goodsId: String(700000000001 + index),
      targetColor: index % 7 === 6 ? '奶茶色' : null,
      targetSize: index % 7 === 6 ? '1.8米床' : null,
      quantity: index % 7 === 6 ? 2 : null,
      priceCent: read ? 3990 + index * 137 : null,
      state,
      step: stepOf[state] ?? null,
      errorCode: code,
      errorMessage: code,
      receivedAt: at(index * 17 + 12, now),
      updatedAt: at(index * 17 + 0.5, now),
    });
  });
}

export function overview(over: Partial<Overview> = {}): Overview {
  return {
    version: '0.1.0',
    demo: true,
    dryRun: true,
    dataDir: 'D:\\CMAutoBuy\\data\\demo',
    sessionOnlySecrets: false,
    loggedInAs: 'operator',
    deviceId: '019571f0-0000-7000-8000-00000000d0d0',
    server: fine('http://127.0.0.1:8788'),
    phone: fine('Demo phone · Android 13'),
    pinduoduo: fine('7.12.0'),
    outbox: fine(''),
    outboxWaiting: 0,
    work: 'running',
    workProblem: null,
    current: null,
    counts: [{ state: 'succeeded', count: 1 }],
    total: 1,
    ...over,
  };
}

const colours = ['奶茶色', '雾霾蓝', '高级灰', '抹茶绿'];
const sizes = ['1.2米床', '1.5米床', '1.8米床'];

export function skus(): SkuView[] {
  return colours.flatMap((colour, row) =>
    sizes.map((size, column) => {
      const unknown = row === 2 && column === 1;
      return {
        options: [colour, size],
        priceCent: unknown ? null : 3990 + row * 300 + column * 1000,
        listPriceCent: row === 0 ? 6990 + column * 1000 : null,
        available: !(row === 3 && column === 2),
        rawPrice: unknown ? null : `¥${39 + row * 3 + column * 10}.9`,
      };
    }),
  );
}

export function goods(over: Partial<GoodsView> = {}): GoodsView {
  return {
    goodsId: '700000000001',
    url: 'https://mobile.yangkeduo.com/goods.html?goods_id=700000000001',
    title: titles[0] ?? '',
    shop: '暖居家纺旗舰店',
    sales: { value: 12000, raw: '已拼1.2万+件', approximate: true },
    reviews: { value: 3406, raw: '商品评价(3406)', approximate: false },
    dimensions: [
      { key: 'color', name: '颜色', values: colours.map((text) => ({ text, available: true })) },
      { key: 'size', name: '尺寸', values: sizes.map((text) => ({ text, available: true })) },
    ],
    skus: skus(),
    capturedAt: at(4),
    ...over,
  };
}

const steps = ['open_goods', 'read_goods', 'open_sku', 'collect_skus', 'close_sheet'];

export function artifacts(first = 1): ArtifactView[] {
  const shots = steps.map<ArtifactView>((step, index) => ({
    id: first + index,
    kind: 'screenshot',
    step,
    path: `artifacts/2026-03-01/demo-collect-0001/1/${index + 1}-${step}.png`,
    sizeBytes: 183_000,
    createdAt: at(4.5 - index * 0.1),
    deleted: index === 4,
  }));
  return [
    ...shots,
    { ...shots[0]!, id: first + 90, kind: 'tree', path: 'artifacts/x/1/1-open_goods.xml', deleted: false },
  ];
}

export function detail(over: Partial<TaskDetail> = {}): TaskDetail {
  return {
    item: item(),
    goodsUrl: 'https://mobile.yangkeduo.com/goods.html?goods_id=700000000001',
    goods: goods(),
    runs: [
      {
        attemptNo: 2,
        status: 'succeeded',
        phone: 'demo-phone',
        step: 'close_sheet',
        startedAt: at(5),
        finishedAt: at(4),
        errorCode: null,
        errorMessage: null,
        artifacts: artifacts(),
      },
      {
        attemptNo: 1,
        status: 'failed',
        phone: 'demo-phone',
        step: 'open_goods',
        startedAt: at(9),
        finishedAt: at(8),
        errorCode: 'NETWORK_PAGE',
        errorMessage: 'the page says the network is busy',
        artifacts: [],
      },
    ],
    outbox: [
      {
        id: 1,
        eventType: 'collect_result',
        idempotencyKey: 'demo-collect-0001:019571f2-7c1e-7a30-9b1d-000000000002:result-v1',
        status: 'sent',
        attempts: 1,
        nextRetryAt: null,
        lastError: null,
        createdAt: at(4),
        sentAt: at(3),
      },
    ],
    ...over,
  };
}

export function preferences(over: Partial<Preferences> = {}): Preferences {
  return { language: 'zh-CN', theme: 'light', ...over };
}
