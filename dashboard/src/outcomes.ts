// SPDX-License-Identifier: Apache-2.0
// What became of a candidate, and the colour that says so, the same on every page.
const colours: Record<string, string> = {
  timed: '--dot-1',
  wrong_output: '--dot-2',
  compile_error: '--dot-3',
  crashed: '--dot-4',
  compile_timeout: '--dot-7',
  run_timeout: '--dot-6',
};

export function colourOfOutcome(kind: string): string {
  return colours[kind] ?? '--dot-5';
}
