// SPDX-License-Identifier: Apache-2.0
// Numbers, times and names as people read them. Not known is a dash.

export const dash = '–';

/** Three digits that count, or all before the point: 1234.5 -> "1,235"; 0.01234 -> "0.0123". */
export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return dash;
  if (value === 0) return '0';
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.max(0, digits - 1 - magnitude);
  return value.toLocaleString('en', {
    minimumFractionDigits: Math.min(decimals, 8),
    maximumFractionDigits: Math.min(decimals, 8),
  });
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? dash : Math.round(value).toLocaleString('en');
}

/** Milliseconds in the unit that suits. */
export function milliseconds(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return dash;
  if (ms >= 1000) return `${number(ms / 1000)} s`;
  if (ms >= 1 || ms === 0) return `${number(ms)} ms`;
  return `${number(ms * 1000)} µs`;
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return dash;
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
}

/** How many times as fast. */
export function speedup(before: number | null | undefined, after: number | null | undefined): string {
  if (!before || !after) return dash;
  return `${(before / after).toFixed(2)}×`;
}

/** 4000 -> "1 h 6 min". */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return dash;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return dash;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  let rest = value;
  while (rest >= 1024 && at + 1 < units.length) {
    rest /= 1024;
    ++at;
  }
  return `${at === 0 ? rest : number(rest)} ${units[at]}`;
}

/** An instant of the API in the reader's own time zone. */
export function instant(text: string | number | null | undefined): string {
  if (text === null || text === undefined || text === '') return dash;
  const time = new Date(text);
  const two = (n: number) => String(n).padStart(2, '0');
  return (
    `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ` +
    `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`
  );
}

/** Labels and options as they were given: "rpi4 room=lab". */
export function pairs(entries: Record<string, string>): string {
  return Object.entries(entries)
    .map(([name, value]) => (value === '' ? name : `${name}=${value}`))
    .join(' ');
}

/** The beginning of a digest or an id. */
export function short(text: string, letters = 12): string {
  return text.length > letters ? `${text.slice(0, letters)}…` : text;
}

/** "wrong_output" -> "wrong output". */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}
