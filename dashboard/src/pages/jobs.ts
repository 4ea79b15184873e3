// All jobs, the newest first; those of one submission by a link.
import { ask } from '../api';
import type { Job, Jobs } from '../api_types';
import { fragment, h } from '../dom';
import { count, duration, milliseconds, number, speedup } from '../format';
import { addressOf } from '../links';
import { type Page, type Window } from '../page';
import { withParameters } from '../parameters';
import { type Column, table } from '../table';
import { badge, bar, button, choice, link, moment } from '../widgets';

const pageSize = 100;

/** How much of its budget it has used; null where it has none. */
export function progressOf(job: Job): number | null {
  const parts: number[] = [];
  if (job.trials_limit) parts.push(job.trials / job.trials_limit);
  if (job.seconds_limit) parts.push(job.seconds / job.seconds_limit);
  return parts.length === 0 ? null : Math.max(...parts);
}

/** Why it failed, what it waits for, or what is being done. */
export function doingOf(job: Job): string {
  if (job.error) return job.error;
  if (job.waiting_for) return `waits for ${job.waiting_for}`;
  return job.state === 'running' ? job.activity : '';
}

export const jobColumns: Column<Job>[] = [
  { name: 'Model', by: (job) => job.model, cell: (job) => link(addressOf.job(job.job), job.model || job.job) },
  {
    name: 'State',
    by: (job) => job.state,
    cell: (job) => fragment(badge(job.state), h('span', { class: 'note block' }, doingOf(job))),
  },
  {
    name: 'Speed-up',
    number: true,
    by: (job) => (job.latency_ms_before && job.latency_ms_after ? job.latency_ms_before / job.latency_ms_after : null),
    cell: (job) => speedup(job.latency_ms_before, job.latency_ms_after),
  },
  {
    name: 'Before',
    number: true,
    by: (job) => job.latency_ms_before,
    cell: (job) => milliseconds(job.latency_ms_before),
  },
  { name: 'Now', number: true, by: (job) => job.latency_ms_after, cell: (job) => milliseconds(job.latency_ms_after) },
  {
    name: 'Trials',
    number: true,
    by: (job) => job.trials,
    cell: (job) =>
      fragment(
        job.trials_limit ? `${count(job.trials)} of ${count(job.trials_limit)}` : count(job.trials),
        job.state === 'running' ? bar(progressOf(job), `How much of the budget of ${job.model} is used`) : null,
      ),
  },
  {
    name: 'Per second',
    number: true,
    by: (job) => (job.state === 'running' ? job.trials_per_second : null),
    cell: (job) => (job.state === 'running' ? number(job.trials_per_second, 2) : ''),
  },
  {
    name: 'Left',
    number: true,
    by: (job) => job.seconds_left,
    cell: (job) => (job.state === 'running' ? duration(job.seconds_left) : ''),
  },
  {
    name: 'Target',
    by: (job) => job.target,
    cell: (job) => h('span', { class: 'long', title: job.target }, job.target),
  },
  { name: 'By', by: (job) => job.submitted_by, cell: (job) => job.submitted_by },
  { name: 'Created', by: (job) => job.created, cell: (job) => moment(job.created) },
];

export function jobsPage(window: Window): Page {
  let jobs: Job[] = [];
  let more = false;
  const query = () => ({ state: window.query('state') || 'all', group: window.query('group') });

  async function load(after?: string): Promise<Job[]> {
    const page = await ask<Jobs>(withParameters('jobs', { ...query(), limit: pageSize, after }), window.closed);
    more = page.more;
    return page.jobs;
  }

  return {
    title: () => 'Jobs',
    async load() {
      jobs = await load();
    },
    change({ jobs: changes }) {
      for (const job of changes?.changed ?? []) {
        const at = jobs.findIndex((known) => known.job === job.job);
        if (at >= 0) jobs[at] = job;
        else if (!query().group || query().group === job.group) jobs.unshift(job);
      }
      if (query().state === 'open') jobs = jobs.filter((job) => !changes?.gone.includes(job.job));
    },
    render() {
      const { state, group } = query();
      return [
        h('h1', {}, 'Jobs'),
        h(
          'div',
          { class: 'actions' },
          choice(
            'Show',
            [
              ['all', 'all jobs'],
              ['open', 'queued and running'],
            ],
            state,
            (value) => {
              window.setQuery({ state: value });
              void this.load().then(window.show);
            },
          ),
          group ? h('p', {}, `Those of submission ${group}. `, link('/jobs', 'All')) : null,
        ),
        table({
          name: 'Jobs',
          columns: jobColumns,
          rows: jobs,
          key: (job) => job.job,
          order: window.query('sort'),
          sort: (order) => window.setQuery({ sort: order }),
          empty: 'There is no job. hone submit MODEL.onnx gives the farm one.',
        }),
        more
          ? button(
              'Show older ones',
              () =>
                void load(jobs[jobs.length - 1]?.job).then((older) => {
                  jobs.push(...older);
                  window.show();
                }),
            )
          : null,
      ];
    },
  };
}
