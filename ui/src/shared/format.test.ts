import { describe, expect, it } from 'vitest';

import { countdown, duration, fileSize, grouped, money, moneyRange, relativeTime, shortId, UNKNOWN } from './format';

describe('money', () => {
  it.each([
    [3990, '¥39.90'],
    [1, '¥0.01'],
    [0, '¥0.00'],
    [100, '¥1.00'],
    [123456789, '¥1,234,567.89'],
    [-250, '-¥2.50'],
    // As a float 0.1 + 0.2 is not 0.3; fen stay whole.
    [30, '¥0.30'],
    [4294967295, '¥42,949,672.95'],
  ])('%i fen reads %s', (fen, text) => {
    expect(money(fen), 'money is exact to the fen').toBe(text);
  });

  it('shows an unknown price as a dash, never as zero', () => {
    expect(money(null), 'nobody read a price').toBe(UNKNOWN);
    expect(moneyRange([null, null]), 'nobody read any price').toBe(UNKNOWN);
    expect(moneyRange([null, 3990, 5990]), 'an unknown price is no lowest price').toBe('¥39.90 – ¥59.90');
    expect(moneyRange([3990, 3990]), 'one price is no range').toBe('¥39.90');
  });

  it('refuses what is no whole fen', () => {
    expect(() => money(39.9), 'yuan passed as fen is a mistake in the code').toThrow(RangeError);
  });
});

describe('time', () => {
  const now = Date.parse('2026-03-01T04:00:00Z');
  it.each([
    ['2026-03-01T03:59:55Z', '现在', 'now'],
    ['2026-03-01T04:00:30Z', '现在', 'now'], // the server's clock is ahead
    ['2026-03-01T03:59:15Z', '45秒钟前', '45 sec. ago'],
    ['2026-03-01T03:57:00Z', '3分钟前', '3 min. ago'],
    ['2026-03-01T02:00:00Z', '2小时前', '2 hr. ago'],
    ['2026-02-28T03:00:00Z', '昨天', 'yesterday'],
  ])('%s reads %s / %s', (iso, zh, en) => {
    expect(relativeTime(iso, now, 'zh-CN'), 'age in Chinese').toBe(zh);
    expect(relativeTime(iso, now, 'en'), 'age in English').toBe(en);
  });

  it('shows an old time as a date and keeps what is no time', () => {
    expect(relativeTime('2026-01-15T12:00:00Z', now, 'en'), 'weeks ago is a date').toBe('2026-01-15');
    expect(relativeTime('soon', now, 'en'), 'nothing is made up').toBe('soon');
  });

  it.each([
    [0, '00:00'],
    [-5000, '00:00'],
    [102_000, '01:42'],
    [3_723_000, '1:02:03'],
  ])('counts %i ms down as %s', (ms, text) => {
    expect(countdown(ms), 'a lease never shows less than nothing').toBe(text);
  });

  it.each([
    ['2026-03-01T00:00:00.850Z', '850 ms'],
    ['2026-03-01T00:00:12.340Z', '12.3 s'],
    ['2026-03-01T00:02:05.000Z', '02:05'],
    ['broken', UNKNOWN],
  ])('takes until %s: %s', (end, text) => {
    expect(duration('2026-03-01T00:00:00Z', end), 'a duration fits its size').toBe(text);
  });
});

describe('numbers and ids', () => {
  it('groups thousands', () => {
    expect(grouped(12000), 'long numbers are read in threes').toBe('12,000');
    expect(grouped(999), 'short ones are left').toBe('999');
  });
  it('shows file sizes', () => {
    expect([512, 34_000, 1_300_000].map(fileSize), 'a size fits its unit').toEqual(['512 B', '33 KB', '1.2 MB']);
  });
  it('keeps the end of a time-ordered id, where neighbours differ', () => {
    expect(shortId('019571f2-7c1e-7a30-9b1d-000000000042'), 'the start is the same for a whole day').toBe('…00000042');
    expect(shortId('T-0001'), 'a short id is whole').toBe('T-0001');
  });
});
