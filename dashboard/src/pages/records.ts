// SPDX-License-Identifier: Apache-2.0
// Records: search among them, the winners of every key, and export.
import { ApiError, ask, askLines, textOf } from '../api';
import { titleOf } from '../candidate_view';
import type { Best, BestPage, RecordRow, Records, RecordStats } from '../api_types';
import { h } from '../dom';
import { count, milliseconds, number, short, speedup, words } from '../format';
import { firstJob } from '../first_steps';
import { deviceColumn, targetColumn } from '../key_columns';
import { addressOf } from '../links';
import type { Page, Window } from '../page';
import { withParameters } from '../parameters';
import { type Column, table } from '../table';
import { button, figures, link, moment, save } from '../widgets';

const pageSize = 100;
const mostExported = 20; // pages: each ends at 10,000 lines or 4 MiB
const exportWaits = [1000, 2000, 4000]; // before a page that was refused for the moment is asked for again
const filters = ['operator', 'workload', 'model', 'target', 'device', 'compiler', 'kind', 'confirmed'] as const;
type Filter = Record<(typeof filters)[number], string>;

const kinds = [
  'timed',
  'failed',
  'schedule_illegal',
  'compile_error',
  'compile_timeout',
  'crashed',
  'run_timeout',
  'wrong_output',
  'out_of_bounds_write',
  'lost_device',
  'forbidden_call',
  'impossible_time',
];

const rowColumns = (rows: RecordRow[]): Column<RecordRow>[] => [
  { name: 'Candidate', number: true, by: (r) => r.row, cell: (r) => link(addressOf.candidate(r.row), String(r.row)) },
  {
    name: 'Workload',
    by: (r) => titleOf(r),
    cell: (r) => link(addressOf.workload(r.workload.digest), titleOf(r)),
  },
  deviceColumn(
    rows,
    (r) => r.device,
    (r) => r.measured_by,
  ),
  { name: 'Outcome', by: (r) => r.failure?.kind ?? 'timed', cell: (r) => words(r.failure?.kind ?? 'timed') },
  { name: 'Time', number: true, by: (r) => r.median_ms, cell: (r) => milliseconds(r.median_ms) },
  { name: 'What it is', cell: (r) => [r.is_default ? 'default ' : '', r.timing?.confirmed ? 'final comparison' : ''] },
  { name: 'Measured', by: (r) => r.measured_at_ms, cell: (r) => moment(r.measured_at_ms) },
  targetColumn(rows, (r) => r.target),
];

const bestColumns = (best: Best[]): Column<Best>[] => [
  {
    name: 'Workload',
    by: (b) => b.title,
    cell: (b) => [
      link(
        addressOf.workload(b.workload, { target: b.target, device: b.device, compiler: b.compiler }),
        b.title || short(b.workload),
      ),
      b.nodes ? h('span', { class: 'note block', title: b.nodes }, short(b.nodes, 60)) : null,
    ],
  },
  deviceColumn(
    best,
    (b) => b.device,
    (b) => b.measured_by,
  ),
  { name: 'Winner', number: true, by: (b) => b.row, cell: (b) => link(addressOf.candidate(b.row), String(b.row)) },
  { name: 'Time', number: true, by: (b) => b.median_ms, cell: (b) => milliseconds(b.median_ms) },
  { name: 'Default', number: true, by: (b) => b.default_ms, cell: (b) => milliseconds(b.default_ms) },
  {
    name: 'Speed-up',
    number: true,
    by: (b) => (b.default_ms ? b.default_ms / b.median_ms : null),
    cell: (b) => speedup(b.default_ms, b.median_ms),
  },
  { name: 'GFLOP/s', number: true, by: (b) => b.gflops, cell: (b) => number(b.gflops) },
  { name: 'Decided by', by: (b) => (b.confirmed ? 0 : 1), cell: (b) => (b.confirmed ? 'final comparison' : 'races') },
  { name: 'Records', number: true, by: (b) => b.records, cell: (b) => count(b.records) },
  targetColumn(best, (b) => b.target),
];

export function recordsPage(window: Window): Page {
  let rows: RecordRow[] = [];
  let best: Best[] = [];
  let more = false;
  let next: string | null = null;
  let stats: RecordStats | null = null;
  let exporting = '';
  let answered = ''; // the question that what is shown answers

  const showsBest = () => window.query('show') === 'best';
  const filter = () => Object.fromEntries(filters.map((name) => [name, window.query(name)])) as Filter;
  const questionNow = () => JSON.stringify([showsBest(), filter()]);

  // An answer may come late: to what was asked before something else, or after what is shown by now.
  async function loadRows(after?: number) {
    const question = questionNow();
    const page = await ask<Records>(
      withParameters('records', { ...filter(), limit: pageSize, after_row: after }),
      window.closed,
    );
    if (question !== questionNow() || (after !== undefined && after !== rows[rows.length - 1]?.row)) return;
    rows = after === undefined ? page.records : [...rows, ...page.records];
    more = page.more;
    answered = question;
  }
  async function loadBest(after?: string) {
    const question = questionNow();
    const { kind: _kind, confirmed: _confirmed, model: _model, ...key } = filter(); // winners are of all models
    const page = await ask<BestPage>(withParameters('records/best', { ...key, limit: pageSize, after }), window.closed);
    if (question !== questionNow() || (after !== undefined && after !== next)) return;
    best = after === undefined ? page.best : [...best, ...page.best];
    next = page.next;
    answered = question;
  }
  const find = () => (showsBest() ? loadBest() : loadRows());

  async function again(step: () => Promise<void>) {
    try {
      await step();
    } catch (error) {
      if (window.closed.aborted) return;
      window.say(textOf(error));
    }
    window.show();
  }

  function search(event: Event) {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    window.setQuery(Object.fromEntries(filters.map((name) => [name, String(form.get(name) ?? '').trim()])));
    void again(find);
  }

  /** Asks again where the tracker cannot answer for the moment: that must not cost the pages before. */
  async function exportPage(question: string) {
    for (const wait of exportWaits) {
      try {
        return await askLines(question, window.closed);
      } catch (error) {
        if (window.closed.aborted || !(error instanceof ApiError) || !error.passing) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
    return askLines(question, window.closed);
  }

  /** Gathers lines page by page: a link could not show who asks. */
  async function exportLines() {
    const wanted = filter();
    const parts: string[] = [];
    let after: string | null = null;
    try {
      for (let page = 0; page < mostExported; ++page) {
        exporting = `Page ${page + 1}…`;
        window.show();
        const lines = await exportPage(withParameters('records/export', { ...wanted, after_row: after ?? undefined }));
        parts.push(lines.text);
        after = lines.next;
        if (after === null) break;
      }
    } finally {
      exporting = '';
    }
    if (after !== null)
      exporting = 'There are more than a browser should hold; hone records export --tracker has them all.';
    save(new Blob(parts, { type: 'application/x-ndjson' }), 'records.jsonl');
  }

  function form() {
    const values = filter();
    const field = (name: keyof Filter, label: string, note: string) =>
      h(
        'label',
        { class: 'field' },
        label,
        h('input', { type: 'search', name, value: values[name], placeholder: note, autocomplete: 'off' }),
      );
    return h(
      'form',
      { onsubmit: search, class: 'actions', role: 'search', 'aria-label': 'Records' },
      field('operator', 'Operator', 'a part of it'),
      field('workload', 'Workload', 'beginning of its digest'),
      field('model', 'Model', 'its file, as net.onnx'),
      field('target', 'Target', 'the whole text'),
      field('device', 'Device', 'the whole fingerprint'),
      field('compiler', 'Compiler', 'its version'),
      h(
        'label',
        { class: 'field' },
        'Outcome',
        h(
          'select',
          { name: 'kind' },
          h('option', { value: '', selected: values.kind === '' }, 'any'),
          kinds.map((kind) => h('option', { value: kind, selected: values.kind === kind }, words(kind))),
        ),
      ),
      h(
        'label',
        { class: 'field' },
        'Of',
        h(
          'select',
          { name: 'confirmed' },
          h('option', { value: '', selected: values.confirmed !== '1' }, 'all'),
          h('option', { value: '1', selected: values.confirmed === '1' }, 'final comparisons'),
        ),
      ),
      h('button', { type: 'submit', class: 'strong' }, 'Search'),
    );
  }

  const order = () => window.query('sort');
  const sort = (wanted: string) => window.setQuery({ sort: wanted });

  return {
    title: () => 'Records',
    async load() {
      // No event tells of records, so a reset says nothing of them: what was paged in stays.
      if (answered !== questionNow()) await find();
      if (stats !== null) return;
      // Counts take a moment where there are millions.
      void ask<RecordStats>('records/stats', window.closed).then(
        (counted) => {
          stats = counted;
          window.show();
        },
        () => undefined,
      );
    },
    render() {
      const show = (which: string) => () => {
        window.setQuery({ show: which, sort: '' });
        void again(find);
      };
      return [
        h('h1', {}, 'Records'),
        stats
          ? figures(
              ['Records', count(stats.records)],
              ['Workloads', count(stats.workloads)],
              ['Kinds of devices', count(stats.devices)],
              ['Failures', count(Object.values(stats.failed).reduce((sum, n) => sum + n, 0))],
            )
          : null,
        form(),
        h(
          'div',
          { class: 'actions', role: 'group', 'aria-label': 'What is shown' },
          button('All', show(''), { 'aria-pressed': String(!showsBest()) }),
          button('Winners', show('best'), { 'aria-pressed': String(showsBest()) }),
          showsBest() ? null : button('Export these', () => void again(exportLines)),
          exporting ? h('p', { class: 'note', role: 'status' }, exporting) : null,
        ),
        showsBest()
          ? table({
              name: 'Winners',
              columns: bestColumns(best),
              rows: best,
              key: (b) => String(b.row),
              order: order(),
              sort,
              empty: 'Nothing has won with these.',
            })
          : table({
              name: 'Records',
              columns: rowColumns(rows),
              rows,
              key: (r) => String(r.row),
              order: order(),
              sort,
              empty: 'There are no such records.',
            }),
        stats?.records === 0 ? firstJob(window.farm) : null,
        showsBest() && next !== null ? button('Show more', () => void again(() => loadBest(next!))) : null,
        !showsBest() && more ? button('Show more', () => void again(() => loadRows(rows[rows.length - 1]?.row))) : null,
      ];
    },
  };
}
