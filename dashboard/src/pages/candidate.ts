// SPDX-License-Identifier: Apache-2.0
// One candidate: its schedule, its samples, where it was measured, and how to have it again.
import { ask } from '../api';
import type { Candidate } from '../api_types';
import { aspectsOf, measurement, rangeOf, Samples, titleOf, whatItIs } from '../candidate_view';
import { h } from '../dom';
import { milliseconds } from '../format';
import { addressOf } from '../links';
import type { Page, Window } from '../page';
import { code, command, facts, link, section } from '../widgets';

export function candidatePage(window: Window): Page {
  const row = window.path[1]!;
  const samples = new Samples('samples', window.closed);
  let candidate: Candidate;

  const compare = (event: Event) => {
    event.preventDefault();
    const other = new FormData(event.target as HTMLFormElement).get('other');
    window.go(addressOf.compare(row, String(other).trim()));
  };

  return {
    title: () => `Candidate ${row}`,
    async load() {
      candidate = await ask<Candidate>(`candidates/${encodeURIComponent(row)}`, window.closed);
    },
    render() {
      const { workload } = candidate;
      const values = (aspects: typeof measurement) =>
        facts(...aspects.map(([name, of]): [string, string] => [name, of(candidate)]));
      return [
        h('h1', {}, `Candidate ${row}: ${milliseconds(candidate.median_ms)}`),
        h('p', {}, `${whatItIs(candidate)}, of `, link(addressOf.workload(workload.digest), titleOf(candidate))),
        candidate.timing ? section('Samples', samples.place(candidate, rangeOf(candidate))) : null,
        section(
          'Schedule',
          candidate.schedule
            ? code(candidate.schedule, 'The schedule')
            : h('p', { class: 'note' }, 'The unscheduled kernel.'),
          candidate.decisions ? values(aspectsOf((c) => c.decisions, [candidate])) : null,
        ),
        section('Measurement', values(measurement)),
        section('Environment', values(aspectsOf((c) => c.environment, [candidate]))),
        section(
          'To have it again',
          candidate.kernel_command
            ? [
                h(
                  'p',
                  { class: 'note' },
                  'Its kernel, made anew of workload and schedule; on any machine with this Hone:',
                ),
                command(candidate.kernel_command, 'The command that makes its kernel'),
              ]
            : null,
          h('p', { class: 'note' }, 'Its record; say with --tracker or --records where:'),
          command(candidate.command, 'The command that prints it'),
        ),
        section(
          'Beside another one',
          h(
            'form',
            { onsubmit: compare, class: 'actions' },
            h(
              'label',
              { class: 'field' },
              'Candidate',
              h('input', { name: 'other', id: 'other', inputmode: 'numeric', pattern: ' *[0-9]+ *', required: true }),
            ),
            h('button', { type: 'submit' }, 'Compare'),
          ),
        ),
        candidate.workload.text ? section('Workload', code(candidate.workload.text, 'The workload as text')) : null,
      ];
    },
  };
}
