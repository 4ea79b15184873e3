// SPDX-License-Identifier: Apache-2.0
// What the trials of a workload come to, in figures.
import type { Best, JobWorkload, Point } from './api_types';
import { bestSoFar } from './best';

/** What is known of a search. */
export interface Trials {
  points: Point[]; // the newest, in the order measured
  older: boolean; // there are more before these
  devices: ReadonlySet<string>; // fingerprints of those that measured them
  winners: Best[]; // one of each key, of all trials
}

export interface SearchFigures {
  oneKey: boolean;
  bestMs: number | null;
  defaultMs: number | null;
  rooflineMs: number | null;
  rooflineShare: number | null;
  count: number;
}

/** The best of the trials that are not among the points; null where that is not known. */
export function earlierBest({ points, older, winners }: Trials): number | null {
  const [winner] = winners;
  return older && winner && points[0] && winner.row < points[0].row ? winner.median_ms : null;
}

/**
 * Times of different keys (target, device and compiler) say nothing about each other: where there are several, no time
 * is known. `job`: what a job says of the key that is shown, if it does.
 */
export function figuresOf(trials: Trials, job: JobWorkload | null): SearchFigures {
  const { points, older, devices, winners } = trials;
  const recorded = winners.reduce((sum, winner) => sum + winner.records, 0);
  const count = older ? Math.max(points.length, recorded) : points.length;
  if (devices.size > 1 || winners.length > 1)
    return { oneKey: false, bestMs: null, defaultMs: null, rooflineMs: null, rooflineShare: null, count };
  const best = bestSoFar(points, earlierBest(trials));
  const defaults = points.filter((point) => point.is_default && point.median_ms !== null);
  return {
    oneKey: true,
    bestMs: best[best.length - 1] ?? null,
    defaultMs: job?.default_ms ?? defaults[defaults.length - 1]?.median_ms ?? winners[0]?.default_ms ?? null,
    rooflineMs: job?.roofline_ms ?? null,
    rooflineShare: job?.roofline_share ?? null,
    count,
  };
}
