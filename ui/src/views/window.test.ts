import { describe, expect, it } from 'vitest';

import { openWindow } from '../test/mount';
import * as sample from '../test/sample';

const listed = (page: ReturnType<typeof openWindow>) =>
  page.until('rows are shown', () => page.all('task-row').length > 0);

describe('start', () => {
  it('shows a failed start in both languages with the next step, and tries again', async () => {
    const problem = sample.problem('SECOND_INSTANCE', 'lock held');
    const page = openWindow({ refuse: new Map([['boot', problem]]) });
    await page.until('the failure is shown', () => page.all('start-failed').length > 0);
    const shown = page.text('start-failed');
    for (const part of [problem.zh.cause, problem.zh.nextStep, problem.en.cause, problem.en.nextStep, 'lock held']) {
      expect(shown, 'the language is not known yet, so both are there').toContain(part);
    }
    expect(
      page.fake.asked.every((ask) => ask.command === 'boot' || ask.command.startsWith('plugin:')),
      'nothing is asked of a program that does not run',
    ).toBe(true);
    page.fake.refuse.clear();
    page.click('start-retry');
    await listed(page);
  });
});

describe('task list', () => {
  it('shows what a row means, in words', async () => {
    const page = openWindow();
    await listed(page);
    const [failed] = page.all('task-row').filter((row) => row.dataset.state === 'failed');
    expect(failed?.textContent, 'a state is a word, not only a colour').toContain('失败');
    expect(failed?.textContent, 'an error code reads as its sentence').toContain(
      sample.problem('GOODS_SOLD_OUT').zh.cause,
    );
    expect(failed?.textContent, 'an unread price is a dash').toContain('—');
    expect(failed?.textContent, 'never zero').not.toContain('¥0');
    expect(page.all('task-row').length, 'only rows in sight exist').toBeLessThan(60);
    expect(page.text('filter-succeeded'), 'counts stand in the filters').toContain('72');
  });

  it('asks the store for a state and for a text', async () => {
    const page = openWindow();
    await listed(page);
    page.click('filter-failed');
    await page.until('only failed tasks are left', () => {
      const rows = page.all('task-row');
      return rows.length > 0 && rows.every((row) => row.dataset.state === 'failed');
    });
    page.click('filter-all');
    const search = page.all('task-search')[0] as HTMLInputElement;
    search.value = '700000000003';
    search.dispatchEvent(new Event('input'));
    await page.until('one task matches', () => page.all('task-row').length === 1);
    search.value = 'no such thing';
    search.dispatchEvent(new Event('input'));
    await page.until('an empty answer says what to do', () => document.body.textContent?.includes('清空条件') ?? false);
  });

  it('is worked by the keyboard', async () => {
    const page = openWindow();
    await listed(page);
    page.key('ArrowDown');
    page.key('ArrowDown');
    page.key('Enter');
    await page.until(
      'the second task is open',
      () => page.all('task-detail')[0]?.dataset.remoteId === page.fake.items[1]?.remoteTaskId,
    );
    page.key('ArrowDown');
    await page.until(
      'the open task follows',
      () => page.all('task-detail')[0]?.dataset.remoteId === page.fake.items[2]?.remoteTaskId,
    );
    page.key('Escape');
    await page.until('it closes', () => page.all('task-detail').length === 0);
    page.key('/');
    await page.until('the search has the focus', () => document.activeElement === page.all('task-search')[0]);
    page.key('ArrowUp');
    expect(page.all('task-detail').length, 'typing moves nothing').toBe(0);
  });

  it('says what to do when there is nothing', async () => {
    const page = openWindow({ items: [], overview: sample.overview({ work: 'stopped', counts: [], total: 0 }) });
    await page.until('the empty list speaks', () => page.text('task-list-empty').includes('开始'));
  });

  it('looks again when the program says that something changed', async () => {
    const page = openWindow();
    await listed(page);
    page.fake.items = [sample.item({ id: 9001, remoteTaskId: 'fresh' })];
    await page.fake.changed();
    await page.until('the new task is there', () => page.all('task-row')[0]?.dataset.remoteId === 'fresh');
  });
});

describe('task detail', () => {
  async function openTask(over: Parameters<typeof sample.detail>[0] = {}) {
    const page = openWindow({ detail: () => sample.detail(over), items: [sample.item()] });
    await listed(page);
    page.all('task-row')[0]?.click();
    await page.until('the detail is shown', () => page.text('task-detail') !== '' && page.all('run').length > 0);
    return page;
  }

  it('shows every price, the unknown and the unavailable', async () => {
    const page = await openTask();
    const table = page.all('sku-table')[0];
    expect(table?.dataset.layout, 'colour by size').toBe('matrix');
    expect(table?.querySelectorAll('tbody tr').length, 'a row for each colour').toBe(4);
    expect(table?.textContent, 'a price to the fen').toContain('¥62.90');
    const off = table?.querySelector('[data-available=false]');
    expect(off?.textContent, 'not available is said in words').toContain('不可选');
    expect(page.text('task-detail'), 'the raw text and what it means').toContain('已拼1.2万+件 约 12,000');
    expect(page.text('task-detail'), 'unknown prices do not lower the range').toContain('¥39.90 – ¥65.90');
  });

  it('reads screenshots as they come into view, and says when one is gone', async () => {
    const page = await openTask();
    await page.until(
      'four pictures are read',
      () => document.querySelectorAll('[data-testid=screenshot] img').length === 4,
    );
    const gone = page.all('screenshot').find((shot) => shot.dataset.deleted === 'true');
    expect(gone?.textContent, 'a removed picture leaves a word, not a hole').toContain('已按保留期删除');
    expect(
      page.fake.asked.filter((ask) => ask.command === 'artifact_image').map((ask) => ask.args.id),
      'a removed picture and a tree are not asked for',
    ).toEqual([1, 2, 3, 4]);
  });

  it('shows the outbox row with its key', async () => {
    const page = await openTask();
    expect(page.text('outbox-row'), 'status, kind and key').toMatch(/已送达.*采集结果.*result-v1/);
  });

  it('shows the problem with its next step, in the chosen language', async () => {
    const item = sample.item({ state: 'manual_review', errorCode: 'RISK_WALL', errorMessage: 'text on the page' });
    const page = await openTask({ item, goods: null });
    const problem = sample.problem('RISK_WALL');
    expect(page.text('problem'), 'cause').toContain(problem.zh.cause);
    expect(page.text('problem'), 'next step').toContain(problem.zh.nextStep);
    expect(page.text('problem'), 'detail for support').toContain('text on the page');
    page.click('switch-language');
    await page.until('it is English', () => page.text('problem').includes(problem.en.nextStep));
    expect(page.fake.preferences.language, 'the choice is kept by the program').toBe('en');
  });

  it('shows a code it does not know instead of hiding it', async () => {
    const page = await openTask({
      item: sample.item({ state: 'failed', errorCode: 'FROM_THE_FUTURE', errorMessage: 'news' }),
    });
    expect(page.text('problem'), 'support must see it').toContain('FROM_THE_FUTURE: news');
  });

  it('offers to collect again only what has ended and was sent', async () => {
    const rows = [
      { state: 'succeeded', offered: true },
      { state: 'failed', offered: true },
      { state: 'cancelled', offered: true },
      { state: 'manual_review', offered: true },
      { state: 'running', offered: false },
      { state: 'claimed', offered: false },
      { state: 'retry_wait', offered: false },
      { state: 'result_pending', offered: false },
    ] as const;
    for (const { state, offered } of rows) {
      const page = await openTask({ item: sample.item({ state }) });
      expect(page.all('recollect').length === 1, `${state}: 03 §7.1`).toBe(offered);
      page.page.unmount();
    }
    const purchase = await openTask({ item: sample.item({ taskType: 'purchase' }) });
    expect(purchase.all('recollect').length, 'a purchase is never collected again').toBe(0);
    purchase.page.unmount();
    const unsent = await openTask({ outbox: [{ ...sample.detail().outbox[0]!, status: 'pending' }] });
    expect((unsent.all('recollect')[0] as HTMLButtonElement).disabled, 'the last result goes first').toBe(true);
  });

  it('asks before it collects again', async () => {
    const page = await openTask();
    const asked = () => page.fake.asked.filter((ask) => ask.command === 'recollect');
    page.click('recollect');
    await page.until('a question is asked', () => page.all('recollect-confirm').length > 0);
    expect(asked(), 'not before the answer').toEqual([]);
    page.click('recollect-confirm');
    await page.until('it is asked of the program', () => asked().length === 1);
    expect(asked()[0]?.args, 'for this task').toEqual({ id: 1 });
  });
});

describe('frame', () => {
  it('starts and stops the work', async () => {
    const page = openWindow();
    await listed(page);
    page.click('stop-work');
    await page.until('it can be started', () => page.all('start-work').length === 1);
    expect(page.text('work-mode'), 'the state is a word').toBe('已停止');
    page.click('start-work');
    await page.until('it can be stopped', () => page.all('stop-work').length === 1);
  });

  it('says why a start was refused', async () => {
    const problem = sample.problem('DEVICE_NOT_READY');
    const page = openWindow({
      overview: sample.overview({ work: 'stopped' }),
      refuse: new Map([['start_work', problem]]),
    });
    await listed(page);
    page.click('start-work');
    await page.until(
      'cause and next step are shown',
      () => document.body.textContent?.includes(`${problem.zh.cause} ${problem.zh.nextStep}`) ?? false,
    );
  });

  it('counts the lease down, and never guesses one', async () => {
    const current = { taskId: 1, title: '保温杯', goodsId: '7', step: 'read_goods', leaseLeftMs: null };
    const page = openWindow({ overview: sample.overview({ current }) });
    await listed(page);
    expect(page.text('current-run'), 'unknown is said').toContain('租约剩余 未知');
    expect(page.text('current-run'), 'the step is translated').toContain('读取商品信息');
    page.fake.overview = sample.overview({ current: { ...current, leaseLeftMs: 83_900 } });
    await page.fake.changed();
    await page.until('the countdown is shown', () => /01:2[0-3]/.test(page.text('current-run')));
  });

  it('explains a light with cause and next step', async () => {
    const problem = sample.problem('ADB_UNREACHABLE');
    const page = openWindow({
      overview: sample.overview({ phone: { level: 'error', subject: '192.168.0.20:5555', problem } }),
    });
    await listed(page);
    expect(page.text('light-phone'), 'colour is never the only signal').toContain('异常');
    page.click('light-phone');
    await page.until('the popover opens', () => page.text('problem-next') === problem.zh.nextStep);
    expect(page.all('demo-badge').length + page.all('dry-run-badge').length, 'demo and dry run are marked').toBe(2);
  });
});

describe('login', () => {
  it('is the page of a new desk, and sends the form once it is complete', async () => {
    const page = openWindow({
      items: [],
      overview: sample.overview({
        loggedInAs: null,
        total: 0,
        counts: [],
        server: { level: 'off', subject: '', problem: null },
      }),
    });
    await page.until('the card is shown', () => page.all('login-card').length === 1);
    expect(page.text('device-id'), 'an administrator needs the id').toContain(page.fake.overview.deviceId);
    const submit = () => page.all('login-form')[0]?.dispatchEvent(new Event('submit', { cancelable: true }));
    submit();
    await page.until('what is missing is said', () => page.text('login-form').includes('请填写'));
    for (const [id, value] of [
      ['login-base-url', 'https://server.test'],
      ['login-user', 'operator'],
      ['login-password', 'secret'],
    ] as const) {
      const input = page.all(id)[0] as HTMLInputElement;
      input.value = value;
      input.dispatchEvent(new Event('input'));
    }
    const problem = sample.problem('LOGIN_REFUSED');
    page.fake.refuse.set('login', problem);
    submit();
    await page.until('a refusal is explained', () => page.text('login-form').includes(problem.zh.nextStep));
    const [login] = page.fake.asked.filter((ask) => ask.command === 'login');
    expect(login?.args, 'the form as typed').toEqual({
      form: { baseUrl: 'https://server.test', userName: 'operator', password: 'secret' },
    });
    page.fake.refuse.clear();
    page.fake.overview = sample.overview({ total: 0, counts: [], work: 'stopped' });
    submit();
    await page.until('the desk is there', () => page.all('task-list').length === 1);
  });

  it('does not hide the tasks of a desk that was logged out', async () => {
    const page = openWindow({ overview: sample.overview({ loggedInAs: null }) });
    await listed(page);
    expect(page.all('logged-out-banner').length, 'but says so').toBe(1);
  });
});
