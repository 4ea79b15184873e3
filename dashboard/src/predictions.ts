// SPDX-License-Identifier: Apache-2.0
// What the cost model expected of trials, beside what they took: which trials say so, and how well it ranked them.
import type { Point } from './api_types';

const fewest = 3; // of which a rank says something

export type Predicted = Point & { median_ms: number; predicted_ms: number };

/** Those with both times, the fastest by prediction first. */
export function predictedOf(points: Point[]): Predicted[] {
  return points
    .filter((point): point is Predicted => point.median_ms !== null && point.predicted_ms !== null)
    .sort((a, b) => a.predicted_ms - b.predicted_ms);
}

// Places in order, the first is 1; equal values share the mean of theirs.
function ranks(values: number[]): number[] {
  const order = values.map((_value, i) => i).sort((a, b) => values[a]! - values[b]!);
  const places = new Array<number>(values.length);
  for (let first = 0; first < order.length; ) {
    let end = first + 1;
    while (end < order.length && values[order[end]!] === values[order[first]!]) ++end;
    for (let i = first; i < end; ++i) places[order[i]!] = (first + 1 + end) / 2;
    first = end;
  }
  return places;
}

/** Spearman's: 1 where both put the trials in the same order, 0 where one tells nothing of the other; null of too few. */
export function rankCorrelation(points: Predicted[]): number | null {
  if (points.length < fewest) return null;
  const a = ranks(points.map((point) => point.predicted_ms));
  const b = ranks(points.map((point) => point.median_ms));
  const middle = (points.length + 1) / 2;
  const sum = (of: (i: number) => number) => points.reduce((total, _point, i) => total + of(i), 0);
  const both = sum((i) => (a[i]! - middle) * (b[i]! - middle));
  const apart = Math.sqrt(sum((i) => (a[i]! - middle) ** 2) * sum((i) => (b[i]! - middle) ** 2));
  return apart > 0 ? both / apart : null;
}
