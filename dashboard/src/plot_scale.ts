// SPDX-License-Identifier: Apache-2.0
// Ranges and grid lines of logarithmic axes. uPlot's own grid lines have no end where the lower end of an axis is a number
// such as 9.7e-5: its step is rounded up to 1e-4, and the sum is rounded to the step's digits.

/** The range of an axis whose values go from `least` to `most`, with a margin; some range if there are no positive ones. */
export function logarithmicRange(least: number | null, most: number | null, margin: number): [number, number] {
  if (least === null || most === null || !(least > 0) || !(most >= least) || !Number.isFinite(most)) return [0.1, 1];
  return [least * 0.9, most * margin];
}

const linearUpTo = 4; // the ratio of the ends up to which lines are at equal distances

/** Where grid lines are, ascending, within [least, most]; both positive. */
export function logarithmicSplits(least: number, most: number): number[] {
  if (!(least > 0) || !(most >= least) || !Number.isFinite(most)) return [];
  if (most / least < linearUpTo) return linearSplits(least, most);
  const splits: number[] = [];
  for (let exponent = Math.floor(Math.log10(least)); exponent <= Math.ceil(Math.log10(most)); ++exponent) {
    for (let digit = 1; digit < 10; ++digit) {
      const split = Number(`${digit}e${exponent}`);
      if (split >= least && split <= most) splits.push(split);
    }
  }
  return splits;
}

// Multiples of 1, 2 or 5 times a power of ten, about five of them.
function linearSplits(least: number, most: number): number[] {
  const exponent = Math.floor(Math.log10((most - least) / 5 || least));
  const wanted = (most - least) / 5;
  const digit = [1, 2, 5].find((candidate) => Number(`${candidate}e${exponent}`) >= wanted);
  const [factor, power] = digit === undefined ? [1, exponent + 1] : [digit, exponent];
  const step = Number(`${factor}e${power}`);
  const splits: number[] = [];
  for (let multiple = Math.ceil(least / step); multiple <= most / step && splits.length < 20; ++multiple) {
    const split = Number(`${multiple * factor}e${power}`); // of decimal digits, so that it is 0.3 and not 0.30000000000000004
    if (split >= least && split <= most) splits.push(split);
  }
  return splits;
}

/** The lines that get a text; null for the others, as many as are told apart over so many powers of ten. */
export function labelled(splits: number[]): (number | null)[] {
  const first = splits[0] ?? 1;
  const ratio = (splits[splits.length - 1] ?? 1) / first;
  const digits = ratio < linearUpTo ? '123456789' : ratio <= 10 ? '12345' : ratio <= 1e3 ? '125' : '1';
  const every = ratio > 1e9 ? 3 : 1; // powers of ten
  return splits.map((split) => {
    const [digit = '', exponent = '0'] = split.toExponential().split('e');
    return digits.includes(digit[0]!) && (every === 1 || Number(exponent) % every === 0) ? split : null;
  });
}
