// SPDX-License-Identifier: Apache-2.0
// A job that tunes: what it gained, its workloads, and what to do with the result.
import type { JobDetail, JobWorkload } from '../api_types';
import { type Child, h } from '../dom';
import { count, duration, instant, milliseconds, number, pairs, percent, short, speedup, words } from '../format';
import { addressOf } from '../links';
import type { Window } from '../page';
import { Plot } from '../plot';
import { RunView } from '../run_view';
import { benchCommand, compileCommand } from '../shell_commands';
import { type Column, table } from '../table';
import { bar, command, facts, figures, link, section } from '../widgets';
import { isOpen, progressOf } from './jobs';

function workloadColumns(job: JobDetail): Column<JobWorkload>[] {
  return [
    {
      name: 'Workload',
      by: (w) => w.title,
      cell: (w) => [
        link(addressOf.workload(w.digest, { job: job.job, target: job.target }), w.title || short(w.digest)),
        w.trouble ? h('span', { class: 'block' }, `not measured: ${w.trouble}`) : '',
      ],
    },
    { name: 'Calls', number: true, by: (w) => w.count, cell: (w) => count(w.count) },
    {
      name: 'Share of time',
      number: true,
      by: (w) => w.share_after,
      cell: (w) => [percent(w.share_after), bar(w.share_after, `${w.title}: share of the model's time`)],
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

/** Who is told of the end of a job, and whether that worked. */
export function noticeOf({ notice }: JobDetail): string {
  if (notice === null) return '';
  if (notice.delivered) return `${notice.url}, which took it`;
  if (notice.attempts === 0 && !notice.given_up) return `${notice.url}, when it ends`;
  if (notice.attempts === 0) return `${notice.url}, which is not told: ${notice.problem}`;
  return `${notice.url}: ${count(notice.attempts)} attempts, the last ended with: ${notice.problem}${notice.given_up ? '; given up' : ''}`;
}

export function tuningJob(window: Window): (job: JobDetail) => Child {
  const view = new RunView(window);
  let points: JobDetail['latency'] = [];
  const latency = new Plot(
    {
      id: 'latency',
      xName: 'time spent tuning',
      xText: (x) => duration(x),
      yName: 'latency of the model',
      yText: (y) => milliseconds(y),
      height: 260,
      describe: (i) => describe(i),
    },
    window.closed,
  );

  function describe(i: number): string {
    const point = points[i];
    if (!point) return '';
    return `${instant(point.at)}: ${milliseconds(point.latency_ms)} after ${count(point.trials)} trials in ${duration(point.seconds)}`;
  }

  function overTime(job: JobDetail): HTMLElement | null {
    points = job.latency;
    const [first] = points;
    const last = points[points.length - 1];
    if (!first || !last || points.length < 2) return null;
    const before = job.latency_ms_before;
    return section(
      'Latency over time',
      latency.place({
        label: `The sum over the model's kernels went from ${milliseconds(first.latency_ms)} to ${milliseconds(last.latency_ms)} in ${duration(last.seconds)} of tuning.`,
        x: points.map((point) => point.seconds),
        series: [
          {
            name: 'with the best schedules so far',
            colour: '--best',
            kind: 'steps',
            y: points.map((p) => p.latency_ms),
          },
          ...(before === null
            ? []
            : [
                {
                  name: 'with default schedules',
                  colour: '--warn',
                  kind: 'line' as const,
                  dashed: true,
                  y: points.map(() => before),
                },
              ]),
        ],
      }),
    );
  }

  /** The run of the whole model at the end: what the job gained. */
  function whole({ confirmation }: JobDetail): Child {
    if (confirmation === null) return null;
    const { ratio, ratio_low: low, ratio_high: high, kernels_ratio: kernels } = confirmation;
    if (ratio === null) {
      return section('The whole model', h('p', { class: 'note' }, `It was not measured: ${confirmation.problem}`));
    }
    const times = (value: number | null) => `${number(value)}×`;
    return section(
      'The whole model, untuned and tuned in turns',
      figures(
        ['Measured gain', times(ratio), low === null ? null : `between ${times(low)} and ${times(high)}, 98% sure`],
        ['Untuned', milliseconds(confirmation.before_ms)],
        ['Tuned', milliseconds(confirmation.after_ms)],
        ['Measured on', link(addressOf.device(confirmation.device), confirmation.device)],
      ),
      confirmation.kernels_disagree
        ? h('p', {}, `The sums of its kernels say ${times(kernels)}. The measured gain is what counts.`)
        : null,
      view.place({
        packages: confirmation.packages.map((one) => ({ ...one, digest: '', bytes: 0 })),
        ratio: low === null || high === null ? null : { ratio: 1 / ratio, low: 1 / high, high: 1 / low, pairs: 0 },
        temperature_before_c: null,
        temperature_after_c: null,
        clock_before_mhz: null,
        clock_after_mhz: null,
      }),
    );
  }

  function spent({ spent: s }: JobDetail): HTMLElement {
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

  function next(job: JobDetail): HTMLElement {
    const { tracker } = window.farm.session;
    return section(
      isOpen(job) ? 'What to do with it' : 'What to do now',
      h(
        'p',
        { class: 'note' },
        'Compiles the model with the fastest kernels that the farm knows, also while the job runs:',
      ),
      command(compileCommand(job, tracker), 'The command that compiles the model'),
      job.devices.length > 0
        ? [
            h('p', { class: 'note' }, 'Then times the whole model on the device:'),
            command(benchCommand(job, tracker), 'The command that times the package'),
          ]
        : null,
    );
  }

  function about(job: JobDetail): HTMLElement {
    return section(
      'About the job',
      facts(
        ['Job', job.job],
        ['Submission', job.group ? link(`/jobs?group=${encodeURIComponent(job.group)}`, job.group) : ''],
        ['Submitted by', job.submitted_by],
        ['Created', instant(job.created)],
        ['Started', job.started ? instant(job.started) : ''],
        ['Ended', job.ended ? instant(job.ended) : ''],
        ['Told of its end', noticeOf(job)],
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
    );
  }

  return (job) => {
    const failures = Object.entries(job.failed).filter(([, n]) => n > 0);
    return [
      figures(
        [
          'Speed-up of kernels',
          speedup(job.latency_ms_before, job.latency_ms_after),
          isOpen(job) ? 'provisional: their sums' : 'by their sums',
        ],
        ['Before', milliseconds(job.latency_ms_before), 'the sum over its kernels'],
        ['Now', milliseconds(job.latency_ms_after)],
        isOpen(job) ? ['Time left', duration(job.seconds_left)] : ['Ended', instant(job.ended)],
        ['Trials', count(job.trials), job.trials_limit ? `of ${count(job.trials_limit)}` : null],
        [
          'Trials per second',
          isOpen(job) ? number(job.trials_per_second, 2) : number(job.seconds > 0 ? job.trials / job.seconds : null, 2),
        ],
      ),
      isOpen(job) ? bar(progressOf(job), 'How much of the budget is used') : null,
      whole(job),
      overTime(job),
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
      next(job),
      h(
        'div',
        { class: 'side-by-side' },
        section('Time spent', spent(job)),
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
        about(job),
      ),
    ];
  };
}
