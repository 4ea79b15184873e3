// SPDX-License-Identifier: Apache-2.0
// The repeats of a measurement.
import type { Candidate } from './api_types';

const bins = 24;
const fewestTurns = 3;

/**
 * The repeats that count, as docs/RECORDS.md has it: those taken in turns with the other finalists, or all where fewer
 * than three were. In milliseconds.
 */
export function countingRepeats(candidate: Candidate): number[] {
  const { timing } = candidate;
  if (!timing) return [];
  const inTurns = timing.seconds.slice(timing.first_interleaved);
  return (inTurns.length >= fewestTurns ? inTurns : timing.seconds).map((seconds) => seconds * 1000);
}

/** How often times fall into equal parts of a range. */
export function histogram(times: number[], least: number, most: number): { x: number[]; y: number[] } {
  const width = Math.max(most - least, most * 1e-6) / bins;
  const y = new Array<number>(bins).fill(0);
  for (const time of times) ++y[Math.min(bins - 1, Math.max(0, Math.floor((time - least) / width)))]!;
  return { x: y.map((_n, i) => least + (i + 0.5) * width), y };
}
