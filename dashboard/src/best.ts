// SPDX-License-Identifier: Apache-2.0
// The best of a search.
import type { Point } from './api_types';

/** Best so far, by point: of verified times. `earlier`: the best before the first of them. */
export function bestSoFar(points: Point[], earlier: number | null = null): (number | null)[] {
  let best = earlier;
  return points.map((point) => {
    if (point.median_ms !== null && point.verified && (best === null || point.median_ms < best)) best = point.median_ms;
    return best;
  });
}
