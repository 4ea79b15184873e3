// SPDX-License-Identifier: Apache-2.0
// What is shown of one candidate, alone or beside another one.
import type { Candidate, RecordRow } from './api_types';
import { type Child, h } from './dom';
import { count, instant, milliseconds, number, percent, short, words } from './format';
import { Plot } from './plot';
import { countingRepeats, histogram } from './repeats';

/** What the workload of a record is called. */
export const titleOf = ({ workload }: Pick<RecordRow, 'workload'>): string =>
  workload.title || workload.operator || short(workload.digest);

export class Samples {
  private readonly plot: Plot;
  private data: { x: number[]; y: number[] } = { x: [], y: [] };

  constructor(id: string, closed: AbortSignal) {
    this.plot = new Plot(
      {
        id,
        xName: 'time of one run',
        xText: (x) => milliseconds(x),
        yName: 'repeats',
        yText: (y) => number(y),
        height: 220,
        describe: (i) => `About ${milliseconds(this.data.x[i])}: ${count(this.data.y[i])} repeats`,
      },
      closed,
    );
  }

  /** `range`: shared by those that are compared. */
  place(candidate: Candidate, range: [number, number]): Child {
    const times = countingRepeats(candidate);
    if (times.length === 0) return h('p', { class: 'note' }, 'It has no times.');
    this.data = histogram(times, ...range);
    return this.plot.place({
      label: `${count(times.length)} repeats between ${milliseconds(Math.min(...times))} and ${milliseconds(Math.max(...times))}; the median is ${milliseconds(candidate.median_ms)}.`,
      x: this.data.x,
      series: [{ name: 'repeats', colour: '--dot-1', kind: 'bars', y: this.data.y }],
    });
  }
}

/** From the fastest to the slowest of all given. */
export function rangeOf(...candidates: Candidate[]): [number, number] {
  const all = candidates.flatMap(countingRepeats);
  return all.length > 0 ? [Math.min(...all), Math.max(...all)] : [0, 1];
}

export function whatItIs(candidate: Candidate): string {
  const { timing, failure } = candidate;
  const notes = [
    failure ? `${words(failure.kind)}: ${failure.text}` : '',
    candidate.is_default ? 'the default schedule' : '',
    timing?.confirmed ? 'of a final comparison' : timing ? 'of a race' : '',
    timing && !timing.verified ? 'its output was not verified' : '',
  ];
  return notes.filter(Boolean).join('; ');
}

const wordsOf = (text: string): [string, string][] =>
  text
    .split(' ')
    .filter(Boolean)
    .map((word) => {
      const at = word.indexOf('=');
      return at < 0 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)];
    });

/** Names and values, the same names for all candidates that are compared. */
export type Aspect = [name: string, of: (candidate: Candidate) => string];

export const measurement: Aspect[] = [
  ['Median', (c) => milliseconds(c.median_ms)],
  ['What it is', whatItIs],
  ['Repeats', (c) => (c.timing ? count(countingRepeats(c).length) : '')],
  ['Calls in a repeat', (c) => (c.timing?.calls_per_repeat ? count(c.timing.calls_per_repeat) : '')],
  ['Reference kernel', (c) => (c.timing?.reference_seconds ? milliseconds(c.timing.reference_seconds * 1000) : '')],
  ['Drift in the visit', (c) => (c.timing ? percent(c.timing.drift) : '')],
  ['Largest error', (c) => (c.timing ? `${number(c.timing.max_error)} of ${number(c.timing.tolerance)} allowed` : '')],
  ['Temperature', (c) => (c.timing?.temperature_celsius ? `${number(c.timing.temperature_celsius)} °C` : '')],
  ['Clock', (c) => (c.timing?.clock_hertz ? `${number(c.timing.clock_hertz / 1e9)} GHz` : '')],
  ['Measured', (c) => `${instant(c.measured_at_ms)} by ${c.measured_by}`],
  ['Target', (c) => c.target],
  ['Device', (c) => c.device],
  ['Compiler', (c) => c.compiler],
  ['Batch', (c) => c.batch],
  ['Measurement', (c) => c.measurement],
  ['Seed', (c) => c.seed_text],
];

/** Aspects for every word `name=value` that one of them has. */
export function aspectsOf(texts: (candidate: Candidate) => string, candidates: Candidate[]): Aspect[] {
  const names = [...new Set(candidates.flatMap((candidate) => wordsOf(texts(candidate)).map(([name]) => name)))];
  return names.map((name) => [
    name,
    (candidate) => wordsOf(texts(candidate)).find(([known]) => known === name)?.[1] ?? '',
  ]);
}
