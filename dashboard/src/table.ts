// SPDX-License-Identifier: Apache-2.0
// A table that a click on a heading sorts. How it is sorted belongs to the page, so that a link can say it.
import { type Child, h } from './dom';

export interface Column<Row> {
  name: string;
  /** What it is sorted by; a column without cannot be sorted by. Null is last. */
  by?: (row: Row) => string | number | null;
  cell: (row: Row) => Child;
  number?: boolean;
}

/** "trials" or "-trials": by which column, and whether the largest comes first. */
export type Order = string;

function compare(a: string | number | null, b: string | number | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  return typeof a === 'number' && typeof b === 'number'
    ? a - b
    : String(a).localeCompare(String(b), 'en', { numeric: true });
}

export function sorted<Row>(rows: Row[], columns: Column<Row>[], order: Order): Row[] {
  const down = order.startsWith('-');
  const by = columns.find((column) => column.name === order.replace(/^-/, ''))?.by;
  if (!by) return rows;
  return [...rows].sort((a, b) => {
    const x = by(a);
    const y = by(b);
    return x === null || y === null || !down ? compare(x, y) : -compare(x, y);
  });
}

export interface TableOptions<Row> {
  name: string; // for those who do not see it
  columns: Column<Row>[];
  rows: Row[];
  key: (row: Row) => string;
  chosen?: string; // the key of a row that stands out
  order?: Order;
  sort?: (order: Order) => void;
  empty: string; // what is said of no rows
}

export function table<Row>(options: TableOptions<Row>): HTMLElement {
  const { columns, order = '', sort } = options;
  if (options.rows.length === 0) return h('p', { class: 'note' }, options.empty);
  const heading = (column: Column<Row>) => {
    const up = order === column.name;
    const down = order === `-${column.name}`;
    const kind = column.number ? 'number' : null;
    if (!column.by || !sort) return h('th', { scope: 'col', class: kind }, column.name);
    // Numbers are first asked for by the largest.
    const next = up ? `-${column.name}` : down ? column.name : column.number ? `-${column.name}` : column.name;
    return h(
      'th',
      { scope: 'col', class: kind, 'aria-sort': up ? 'ascending' : down ? 'descending' : 'none' },
      h(
        'button',
        { type: 'button', onclick: () => sort(next) },
        column.name,
        h('span', { 'aria-hidden': 'true' }, up ? ' ▲' : down ? ' ▼' : ''),
      ),
    );
  };
  return h(
    'div',
    { class: 'table', tabindex: 0, role: 'region', 'aria-label': options.name },
    h(
      'table',
      {},
      h('caption', { class: 'unseen' }, options.name),
      h('thead', {}, h('tr', {}, columns.map(heading))),
      h(
        'tbody',
        {},
        sorted(options.rows, columns, order).map((row) =>
          h(
            'tr',
            { 'data-key': options.key(row), 'aria-current': options.key(row) === options.chosen ? 'true' : null },
            columns.map((column) => h('td', { class: column.number ? 'number' : null }, column.cell(row))),
          ),
        ),
      ),
    ),
  );
}
