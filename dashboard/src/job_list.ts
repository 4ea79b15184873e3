// SPDX-License-Identifier: Apache-2.0
// A list of jobs, the newest first, of which the oldest may not have been asked for yet.
import type { Job } from './api_types';

const createdBefore = (a: Job, b: Job) => (a.created ?? '') < (b.created ?? '');

/** With a job as it is now. A new one stands by its age, unless it belongs to what is not asked for yet (`more`). */
export function withJob(jobs: Job[], job: Job, more: boolean): Job[] {
  if (jobs.some((known) => known.job === job.job)) return jobs.map((known) => (known.job === job.job ? job : known));
  const older = jobs.findIndex((known) => createdBefore(known, job));
  if (older < 0) return more ? jobs : [...jobs, job];
  return [...jobs.slice(0, older), job, ...jobs.slice(older)];
}

/** With the page of older ones after it. */
export function withOlder(jobs: Job[], page: Job[]): Job[] {
  const known = new Set(jobs.map((job) => job.job));
  return [...jobs, ...page.filter((job) => !known.has(job.job))];
}
