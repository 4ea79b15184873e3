// SPDX-License-Identifier: Apache-2.0
// The nights of a fleet watch as text and as points of a plot. Pure.
import type { Night, Verdict, Watch, WatchedDevice } from './api_types';

/** A watch on one of its devices: a row of the list. */
export interface WatchRow {
  watch: Watch;
  device: WatchedDevice;
}

export const rowsOf = (watches: Watch[]): WatchRow[] =>
  watches.flatMap((watch) => watch.devices.map((device) => ({ watch, device })));

/** Needs a look before others: the smaller, the sooner. */
const urgency: Record<Verdict, number> = { slower: 0, drift: 1, changed: 2, did_not_run: 3, faster: 4, ok: 5 };
export const urgencyOf = (verdict: Verdict | null): number => (verdict === null ? 6 : urgency[verdict]);

export const verdictText = (verdict: Verdict | null): string =>
  verdict === null ? 'not measured yet' : verdict === 'changed' ? 'changed environment' : verdict.replaceAll('_', ' ');

const blocks = '▁▂▃▄▅▆▇█';
const leastRange = 0.05; // of the largest, so that noise does not look like a change

/** A line of blocks, one for each night: higher is slower, '·' did not run. */
export function sparkline(nights: Pick<Night, 'median_ms'>[]): string {
  const times = nights.map((night) => night.median_ms).filter((ms): ms is number => ms !== null);
  if (times.length === 0) return nights.map(() => '·').join('');
  const lowest = Math.min(...times);
  const range = Math.max(Math.max(...times) - lowest, Math.max(...times) * leastRange);
  return nights
    .map(({ median_ms }) =>
      median_ms === null
        ? '·'
        : blocks[Math.min(blocks.length - 1, Math.floor(((median_ms - lowest) / range) * blocks.length))],
    )
    .join('');
}
