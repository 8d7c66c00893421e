/** Money, numbers and time as text: the only place that makes them. Money is whole fen and never passes through a float. */

export type Locale = 'zh-CN' | 'en';

/** What is shown for a value nobody knows. Never 0. */
export const UNKNOWN = '—';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `3990` is `¥39.90`; `null` is unknown. */
export function money(fen: number | null): string {
  if (fen === null) return UNKNOWN;
  if (!Number.isSafeInteger(fen)) throw new RangeError(`${fen} is no whole number of fen`);
  const whole = Math.abs(fen);
  const cents = whole % 100;
  const yuan = (whole - cents) / 100;
  return `${fen < 0 ? '-' : ''}¥${grouped(yuan)}.${String(cents).padStart(2, '0')}`;
}

/** `¥39.90` for one price, `¥39.90 – ¥59.90` for several; unknown prices are left out. */
export function moneyRange(prices: readonly (number | null)[]): string {
  const known = prices.filter((price) => price !== null);
  if (known.length === 0) return UNKNOWN;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return low === high ? money(low) : `${money(low)} – ${money(high)}`;
}

/** `12000` is `12,000`, the same in both languages. */
export function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `2026-01-31 08:05:09` in this computer's time zone. */
export function absoluteTime(iso: string): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso;
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${clockTime(iso)}`;
}

/** `08:05:09` in this computer's time zone. */
export function clockTime(iso: string): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso;
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/** `3 分钟前` / `3 minutes ago`; a week ago and older is the date. The server's clock may be ahead: that is "now". */
export function relativeTime(iso: string, nowMs: number, locale: Locale): string {
  const time = Date.parse(iso);
  if (Number.isNaN(time)) return iso;
  const age = nowMs - time;
  const words = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: locale === 'en' ? 'short' : 'long' });
  if (age < 10_000) return words.format(0, 'second');
  if (age < MINUTE_MS) return words.format(-Math.floor(age / 1000), 'second');
  if (age < HOUR_MS) return words.format(-Math.floor(age / MINUTE_MS), 'minute');
  if (age < DAY_MS) return words.format(-Math.floor(age / HOUR_MS), 'hour');
  if (age < 7 * DAY_MS) return words.format(-Math.floor(age / DAY_MS), 'day');
  return absoluteTime(iso).slice(0, 10);
}

/** `01:42`, `1:02:03`; below zero is `00:00`. */
export function countdown(ms: number): string {
  const total = Math.max(0, Math.floor(ms / 1000));
  const [hours, minutes, seconds] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${two(minutes)}:${two(seconds)}`;
}

/** How long something took: `850 ms`, `12.3 s`, `2:05`. */
export function duration(fromIso: string, toIso: string): string {
  const ms = Math.max(0, Date.parse(toIso) - Date.parse(fromIso));
  if (Number.isNaN(ms)) return UNKNOWN;
  if (ms < 1000) return `${ms} ms`;
  if (ms < MINUTE_MS) return `${(ms / 1000).toFixed(1)} s`;
  return countdown(ms);
}

/** `512 B`, `34 KB`, `1.2 MB`. */
export function fileSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** The end of a long id, where time-ordered ids differ. */
export function shortId(id: string): string {
  return id.length <= 12 ? id : `…${id.slice(-8)}`;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
