// The best of a search.
import type { Point } from './api_types';

/** Best so far, by point: of verified times. */
export function bestSoFar(points: Point[]): (number | null)[] {
  let best: number | null = null;
  return points.map((point) => {
    if (point.median_ms !== null && point.verified && (best === null || point.median_ms < best)) best = point.median_ms;
    return best;
  });
}
