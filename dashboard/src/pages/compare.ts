// SPDX-License-Identifier: Apache-2.0
// Two candidates side by side: /compare?a=ROW&b=ROW.
import { ApiError, ask } from '../api';
import type { Candidate } from '../api_types';
import { type Aspect, aspectsOf, measurement, rangeOf, Samples, titleOf } from '../candidate_view';
import { h } from '../dom';
import { milliseconds, speedup } from '../format';
import { addressOf } from '../links';
import type { Page, Window } from '../page';
import { code, link, section } from '../widgets';

export function comparePage(window: Window): Page {
  const rows = [window.query('a'), window.query('b')] as const;
  const samples = [new Samples('samples-a', window.closed), new Samples('samples-b', window.closed)] as const;
  let a: Candidate;
  let b: Candidate;

  /** A table of what both have, where what differs stands out, also to those who do not see it. */
  function both(name: string, aspects: Aspect[]) {
    const lines = aspects
      .map(([aspect, of]) => ({ aspect, x: of(a), y: of(b) }))
      .filter(({ x, y }) => x !== '' || y !== '');
    if (lines.length === 0) return h('p', { class: 'note' }, 'Neither has any.');
    return h(
      'div',
      { class: 'table', tabindex: 0, role: 'region', 'aria-label': name },
      h(
        'table',
        {},
        h('caption', { class: 'unseen' }, name),
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            h('th', { scope: 'col' }, 'Of both'),
            h('th', { scope: 'col' }, `Candidate ${rows[0]}`),
            h('th', { scope: 'col' }, `Candidate ${rows[1]}`),
          ),
        ),
        h(
          'tbody',
          {},
          lines.map(({ aspect, x, y }) =>
            h(
              'tr',
              { class: x === y ? null : 'differs' },
              h('th', { scope: 'row' }, aspect, x === y ? null : h('span', { class: 'unseen' }, ' (differs)')),
              h('td', {}, x),
              h('td', {}, y),
            ),
          ),
        ),
      ),
    );
  }

  function schedules() {
    const [left, right] = [a.schedule.split('\n'), b.schedule.split('\n')];
    const marked = (lines: string[], others: string[]) =>
      lines.map((line) => `${others.includes(line) ? '  ' : '≠ '}${line}`).join('\n');
    return h(
      'div',
      { class: 'side-by-side' },
      h('div', {}, h('h3', {}, `Candidate ${rows[0]}`), code(marked(left, right), `Schedule of candidate ${rows[0]}`)),
      h('div', {}, h('h3', {}, `Candidate ${rows[1]}`), code(marked(right, left), `Schedule of candidate ${rows[1]}`)),
    );
  }

  return {
    title: () => `Candidates ${rows[0]} and ${rows[1]}`,
    async load() {
      if (!rows[0] || !rows[1])
        throw new ApiError(404, 'not_found', 'An address like /compare?a=12&b=34 compares two candidates.');
      [a, b] = await Promise.all([
        ask<Candidate>(`candidates/${encodeURIComponent(rows[0])}`, window.closed),
        ask<Candidate>(`candidates/${encodeURIComponent(rows[1])}`, window.closed),
      ]);
    },
    render() {
      const range = rangeOf(a, b);
      const same = a.workload.digest === b.workload.digest;
      return [
        h('h1', {}, `Candidates ${rows[0]} and ${rows[1]}`),
        h(
          'p',
          {},
          link(addressOf.candidate(a.row), `${rows[0]}: ${milliseconds(a.median_ms)}`),
          ', ',
          link(addressOf.candidate(b.row), `${rows[1]}: ${milliseconds(b.median_ms)}`),
          same
            ? `; the first is ${speedup(b.median_ms, a.median_ms)} as fast. Both are of `
            : '; they are of different workloads, and the times say nothing about each other. The first is of ',
          link(addressOf.workload(a.workload.digest), titleOf(a)),
          '.',
        ),
        section(
          'Samples',
          h(
            'div',
            { class: 'side-by-side' },
            h('div', {}, h('h3', {}, `Candidate ${rows[0]}`), samples[0].place(a, range)),
            h('div', {}, h('h3', {}, `Candidate ${rows[1]}`), samples[1].place(b, range)),
          ),
        ),
        section(
          'Schedules',
          h('p', { class: 'note' }, 'Lines that the other one lacks are marked with ≠.'),
          schedules(),
        ),
        section(
          'Decisions',
          both(
            'Decisions',
            aspectsOf((c) => c.decisions, [a, b]),
          ),
        ),
        section('Measurements', both('Measurements', measurement)),
        section(
          'Environments',
          both(
            'Environments',
            aspectsOf((c) => c.environment, [a, b]),
          ),
        ),
      ];
    },
  };
}
