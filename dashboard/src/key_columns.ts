// SPDX-License-Identifier: Apache-2.0
// The columns of tables whose rows are of several devices and targets, shortened to what tells the rows apart.
import { h } from './dom';
import { shortDevices, shortTargets } from './short_names';
import type { Column } from './table';

const shownAs = (short: Map<string, string>, text: string) =>
  h('span', { class: 'nowrap', title: text }, short.get(text) ?? text);

export function targetColumn<Row>(rows: Row[], targetOf: (row: Row) => string): Column<Row> {
  const short = shortTargets(rows.map(targetOf));
  return { name: 'Target', by: targetOf, cell: (row) => shownAs(short, targetOf(row)) };
}

/** `boardOf`: the board that measured the row, AGENT/DEVICE; its fingerprint stands below, which several boards may share. */
export function deviceColumn<Row>(
  rows: Row[],
  fingerprintOf: (row: Row) => string,
  boardOf: (row: Row) => string,
): Column<Row> {
  const short = shortDevices(rows.map(fingerprintOf));
  return {
    name: 'Device',
    by: (row) => boardOf(row) || fingerprintOf(row),
    cell: (row) => [
      boardOf(row),
      h('span', { class: 'note block nowrap', title: fingerprintOf(row) }, short.get(fingerprintOf(row)) ?? ''),
    ],
  };
}
