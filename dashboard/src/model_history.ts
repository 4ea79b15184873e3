// SPDX-License-Identifier: Apache-2.0
// Where a model was tuned, and how its latency changed there from job to job. Pure.
import type { Job } from './api_types';

/** A device, or a set of devices that a job may choose from, with a target. */
export interface Place {
  key: string;
  device: string;
  target: string;
  kind: string; // of its latencies: 'measured' on the whole model, or 'sum of kernels'
  newest: Job; // that has a latency
  jobs: number;
  /** How much slower the newest is than the fastest before it, as a share: 0.1 is 10% slower. Null: it is the first. */
  slower: number | null;
}

/** Milliseconds of a run of the model: measured at the end of the job, or else the sum over its kernels. */
export const beforeOf = (job: Job) => job.confirmation?.before_ms ?? job.latency_ms_before;
export const afterOf = (job: Job) => job.confirmation?.after_ms ?? job.latency_ms_after;

/** Values of one kind alone are comparable. */
const keyOf = (job: Job) =>
  [job.devices.join(', '), job.target, job.confirmation?.after_ms ? 'measured' : 'sum of kernels'].join('\n');

/** Ended tuning jobs in which every kernel was measured; jobs are the newest first. */
const measured = (jobs: Job[]) => jobs.filter((job) => job.run === null && job.ended && job.latency_ms_after !== null);

export function placesOf(jobs: Job[]): Place[] {
  const places = new Map<string, Job[]>();
  for (const job of measured(jobs)) places.set(keyOf(job), [...(places.get(keyOf(job)) ?? []), job]);
  return [...places].map(([key, [newest, ...earlier]]) => {
    const before = earlier.map((job) => afterOf(job)!);
    return {
      key,
      device: newest!.devices.join(', ') || 'any device',
      target: newest!.target,
      kind: newest!.confirmation?.after_ms ? 'measured' : 'sum of kernels',
      newest: newest!,
      jobs: 1 + earlier.length,
      slower: before.length === 0 ? null : afterOf(newest!)! / Math.min(...before) - 1,
    };
  });
}

/** The jobs in the order of their ends, their x in seconds since 1970, and for each place a y at every x. */
export function history(jobs: Job[], places: Place[]): { points: Job[]; x: number[]; series: (number | null)[][] } {
  const points = measured(jobs).sort((a, b) => Date.parse(a.ended!) - Date.parse(b.ended!));
  return {
    points,
    x: points.map((job) => Date.parse(job.ended!) / 1000),
    series: places.map((place) => points.map((job) => (keyOf(job) === place.key ? afterOf(job) : null))),
  };
}
