// SPDX-License-Identifier: Apache-2.0
// One job: how far it is, what it gained, and its workloads.
import { act, ApiError, ask } from '../api';
import type { Change, JobDetail, JobWorkload } from '../api_types';
import { h } from '../dom';
import { count, duration, instant, milliseconds, number, pairs, percent, short, speedup, words } from '../format';
import { addressOf } from '../links';
import { may, type Page, sparingly, type Window } from '../page';
import { type Column, table } from '../table';
import { badge, bar, button, confirmed, facts, figures, link, section } from '../widgets';
import { doingOf, progressOf } from './jobs';

const oftenest = 1000;

function workloadColumns(job: JobDetail): Column<JobWorkload>[] {
  return [
    {
      name: 'Operator',
      by: (w) => w.operator,
      cell: (w) => [
        link(addressOf.workload(w.digest, { job: job.job, target: job.target }), w.operator || short(w.digest)),
        h('span', { class: 'note block' }, short(w.digest, 8)),
        w.trouble ? h('span', { class: 'block' }, `not measured: ${w.trouble}`) : '',
      ],
    },
    { name: 'Calls', number: true, by: (w) => w.count, cell: (w) => count(w.count) },
    {
      name: 'Share of time',
      number: true,
      by: (w) => w.share_after,
      cell: (w) => [percent(w.share_after), bar(w.share_after, `${w.operator}: share of the model's time`)],
    },
    { name: 'Before', number: true, by: (w) => w.default_ms, cell: (w) => milliseconds(w.default_ms) },
    { name: 'After', number: true, by: (w) => w.best_ms, cell: (w) => milliseconds(w.best_ms) },
    {
      name: 'Speed-up',
      number: true,
      by: (w) => (w.default_ms && w.best_ms ? w.default_ms / w.best_ms : null),
      cell: (w) => speedup(w.default_ms, w.best_ms),
    },
    { name: 'Of roofline', number: true, by: (w) => w.roofline_share, cell: (w) => percent(w.roofline_share) },
    { name: 'GFLOP/s', number: true, by: (w) => w.gflops, cell: (w) => number(w.gflops) },
    { name: 'Trials', number: true, by: (w) => w.trials, cell: (w) => count(w.trials) },
  ];
}

export function jobPage(window: Window): Page {
  const id = window.path[1]!;
  let job: JobDetail;

  const refresh = sparingly(
    async () => {
      job = await ask<JobDetail>(`jobs/${encodeURIComponent(id)}`, window.closed);
      window.show();
    },
    oftenest,
    window.closed,
  );

  async function cancel() {
    if (
      !(await confirmed(
        'Cancel this job?',
        `${job.model} ends with what it has found so far. What was measured stays in the records.`,
        'Cancel the job',
      ))
    )
      return;
    try {
      await act('POST', `jobs/${encodeURIComponent(id)}/cancel`);
      window.say('The job is cancelled.');
      refresh();
    } catch (error) {
      window.say(error instanceof ApiError ? error.message : String(error));
    }
  }

  const isOpen = () => job.state === 'queued' || job.state === 'running';

  function spent() {
    const { spent: s } = job;
    return facts(
      ['Proposing candidates', duration(s.proposing_seconds)],
      ['Training the cost model', duration(s.learning_seconds)],
      ['Compiling', `${duration(s.building_seconds)}, of all compilers together`],
      ['Waiting for a device', duration(s.waiting_seconds)],
      ['Measuring', duration(s.measuring_seconds)],
      [
        'Candidates looked at',
        `${count(s.drawn)}; ${count(s.illegal)} lead to no schedule, ${count(s.repeated)} to that of another one`,
      ],
    );
  }

  function told(): string {
    const { notice } = job;
    if (notice === null) return '';
    if (notice.delivered) return `${notice.url}, which took it`;
    if (notice.attempts === 0 && !notice.given_up) return `${notice.url}, when it ends`;
    if (notice.attempts === 0) return `${notice.url}, which is not told: ${notice.problem}`;
    return `${notice.url}: ${count(notice.attempts)} attempts, the last ended with: ${notice.problem}${notice.given_up ? '; given up' : ''}`;
  }

  return {
    title: () => job.model || job.job,
    async load() {
      job = await ask<JobDetail>(`jobs/${encodeURIComponent(id)}`, window.closed);
    },
    change({ jobs }: Change) {
      const mine = jobs?.changed.find((changed) => changed.job === id);
      if (!mine) return;
      Object.assign(job, mine);
      refresh();
    },
    render() {
      const failures = Object.entries(job.failed).filter(([, n]) => n > 0);
      return [
        h('h1', {}, job.model || job.job),
        h('p', {}, badge(job.state), ' ', doingOf(job)),
        figures(
          ['Speed-up', speedup(job.latency_ms_before, job.latency_ms_after)],
          ['Before', milliseconds(job.latency_ms_before), 'the sum over its kernels'],
          ['Now', milliseconds(job.latency_ms_after)],
          isOpen() ? ['Time left', duration(job.seconds_left)] : ['Ended', instant(job.ended)],
          ['Trials', count(job.trials), job.trials_limit ? `of ${count(job.trials_limit)}` : null],
          [
            'Trials per second',
            isOpen() ? number(job.trials_per_second, 2) : number(job.seconds > 0 ? job.trials / job.seconds : null, 2),
          ],
        ),
        isOpen() ? bar(progressOf(job), 'How much of the budget is used') : null,
        may(window.farm, 'cancel') && isOpen()
          ? h(
              'p',
              { class: 'actions' },
              button('Cancel the job…', () => void cancel()),
            )
          : null,
        section(
          'Workloads',
          table({
            name: 'Workloads',
            columns: workloadColumns(job),
            rows: job.workloads,
            key: (w) => w.digest,
            order: window.query('sort') || '-Share of time',
            sort: (order) => window.setQuery({ sort: order }),
            empty: 'The model has no workloads.',
          }),
        ),
        section('Time spent', spent()),
        failures.length > 0
          ? section(
              'Failed candidates',
              h(
                'ul',
                { class: 'chips' },
                failures.map(([kind, n]) => h('li', {}, `${words(kind)} `, h('strong', {}, count(n)))),
              ),
            )
          : null,
        section(
          'About the job',
          facts(
            ['Job', job.job],
            ['Submission', job.group ? link(`/jobs?group=${encodeURIComponent(job.group)}`, job.group) : ''],
            ['Submitted by', job.submitted_by],
            ['Created', instant(job.created)],
            ['Started', job.started ? instant(job.started) : ''],
            ['Told of its end', told()],
            ['Ends at the latest', job.until ? instant(job.until) : ''],
            [
              'Time tuning',
              job.seconds_limit ? `${duration(job.seconds)} of ${duration(job.seconds_limit)}` : duration(job.seconds),
            ],
            ['Target', job.target],
            ['Threads', count(job.threads)],
            ['Devices', job.devices.join(', ') || 'any that fits'],
            ['Labels', pairs(job.labels)],
            ['Options', pairs(job.options)],
            ['Priority', String(job.priority)],
            ['Seed', job.seed_text],
            ['Tuners that took it', count(job.attempts)],
            ['Model', job.model_digest],
          ),
        ),
      ];
    },
  };
}
