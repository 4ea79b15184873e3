// SPDX-License-Identifier: Apache-2.0
// Which point of a plot is meant where several have the same x.

/** Of those with the x of the point `at`, the one of the least distance. */
export function nearestAtX(x: number[], at: number, distance: (at: number) => number): number {
  let first = at;
  while (first > 0 && x[first - 1] === x[at]) --first;
  let nearest = first;
  let least = distance(first);
  for (let other = first + 1; other < x.length && x[other] === x[at]; ++other) {
    const its = distance(other);
    if (its >= least) continue;
    nearest = other;
    least = its;
  }
  return nearest;
}
