// SPDX-License-Identifier: Apache-2.0
// What a run of packages comes to, in words and figures. Not here: how it looks (run_view.ts).
import type { Job, Run, RunKernel, RunPackage } from './api_types';
import { percent } from './format';

type RunOf = Pick<Run, 'kind' | 'device' | 'packages'>;

const kinds: Record<string, string> = { run: 'Run', bench: 'Bench', profile: 'Profile', comparison: 'Comparison' };

/** "Bench of net.hone"; of two packages "new.hone beside old.hone", the second beside the first. */
export function runName({ kind, packages }: RunOf): string {
  const names = packages.map(({ name }) => name || 'a package without a name');
  if (names.length === 2) return `${names[1]} beside ${names[0]}`;
  return `${kinds[kind] ?? 'Run'} of ${names.join(', ')}`;
}

/** Where it ran, or where it is to. */
export function placeOf(job: Pick<Job, 'run' | 'devices'>): string {
  return job.run?.device || job.devices.join(' or ');
}

/** What a list calls a job. */
export function jobName(job: Pick<Job, 'run' | 'model' | 'job'>): string {
  return job.run === null ? job.model || job.job : runName(job.run);
}

/** "2.0% slower (98% sure: between 1.1% and 2.9%)", or that no difference is sure. */
export function comparisonText({ ratio, low, high }: NonNullable<Run['ratio']>): string {
  const change = (value: number) => (value >= 1 ? `${percent(value - 1)} slower` : `${percent(1 - value)} faster`);
  const range = `between ${change(low)} and ${change(high)}, with a confidence of 98%`;
  return low <= 1 && high >= 1 ? `no sure difference: ${range}` : `${change(ratio)}: ${range}`;
}

/** The operator in a kernel's name: "hone_k3_conv2d" is a conv2d. */
export function operatorOf(symbol: string): string {
  return symbol.replace(/^hone_k\d+_?/, '') || symbol;
}

export interface OperatorShare {
  operator: string;
  calls: number;
  time_ms: number;
  share: number; // of all kernels: 0 to 1
}

/** The operators of a profile, the one that takes longest first. */
export function operatorsOf(kernels: RunKernel[]): OperatorShare[] {
  const all = totalOf(kernels);
  const found = new Map<string, OperatorShare>();
  for (const { symbol, time_ms } of kernels) {
    const operator = operatorOf(symbol);
    const sum = found.get(operator) ?? { operator, calls: 0, time_ms: 0, share: 0 };
    ++sum.calls;
    sum.time_ms += time_ms;
    sum.share = all > 0 ? sum.time_ms / all : 0;
    found.set(operator, sum);
  }
  return [...found.values()].sort((a, b) => b.time_ms - a.time_ms);
}

export function totalOf(kernels: RunKernel[]): number {
  return kernels.reduce((sum, kernel) => sum + kernel.time_ms, 0);
}

/** The first minute, counted from 1, that is more than 5% slower than the fastest one before it; null: none is. */
export function slowedAt(minutes: { median_ms: number }[]): number | null {
  let fastest = Infinity;
  for (const [i, { median_ms }] of minutes.entries()) {
    if (median_ms > fastest * 1.05) return i + 1;
    fastest = Math.min(fastest, median_ms);
  }
  return null;
}

export const hasReport = (run: Pick<Run, 'packages'>): boolean =>
  run.packages.some((one: RunPackage) => one.median_ms !== undefined);
