// SPDX-License-Identifier: Apache-2.0
// All jobs, the newest first; those of one submission by a link.
import { ask, textOf } from '../api';
import type { Job, Jobs } from '../api_types';
import { fragment, h } from '../dom';
import { count, duration, milliseconds, number, speedup } from '../format';
import { firstJob } from '../first_steps';
import { withJob, withOlder } from '../job_list';
import { targetColumn } from '../key_columns';
import { addressOf } from '../links';
import { afterOf, beforeOf } from '../model_history';
import { type Page, type Window } from '../page';
import { jobName, placeOf } from '../runs';
import { loadDevices } from './devices';
import { withParameters } from '../parameters';
import { type Column, table } from '../table';
import { badge, bar, button, choice, formerChoice, link, moment } from '../widgets';

const pageSize = 100;
const largestPage = 500;

export const isOpen = (job: Job) => job.state === 'queued' || job.state === 'running';

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

const isTuning = (job: Job) => job.run === null && job.state === 'running';

export const jobColumns = (jobs: Job[]): Column<Job>[] => [
  { name: 'Job', by: jobName, cell: (job) => link(addressOf.job(job.job), jobName(job)) },
  { name: 'Device', by: placeOf, cell: (job) => placeOf(job) },
  {
    name: 'State',
    by: (job) => job.state,
    cell: (job) => fragment(badge(job.state), h('span', { class: 'note block' }, doingOf(job))),
  },
  {
    name: 'Speed-up',
    number: true,
    by: (job) => (job.run === null && beforeOf(job) && afterOf(job) ? beforeOf(job)! / afterOf(job)! : null),
    cell: (job) => (job.run === null ? speedup(beforeOf(job), afterOf(job)) : ''),
  },
  {
    name: 'Before',
    number: true,
    by: beforeOf,
    cell: (job) => milliseconds(beforeOf(job)),
  },
  {
    name: 'Latency',
    number: true,
    by: afterOf,
    cell: (job) => milliseconds(afterOf(job)),
  },
  {
    name: 'Trials',
    number: true,
    by: (job) => (job.run === null ? job.trials : null),
    cell: (job) =>
      job.run === null &&
      fragment(
        job.trials_limit ? `${count(job.trials)} of ${count(job.trials_limit)}` : count(job.trials),
        job.state === 'running' ? bar(progressOf(job), `How much of the budget of ${job.model} is used`) : null,
      ),
  },
  {
    name: 'Per second',
    number: true,
    by: (job) => (isTuning(job) ? job.trials_per_second : null),
    cell: (job) => (isTuning(job) ? number(job.trials_per_second, 2) : ''),
  },
  {
    name: 'Left',
    number: true,
    by: (job) => job.seconds_left,
    cell: (job) => (isTuning(job) ? duration(job.seconds_left) : ''),
  },
  targetColumn(jobs, (job) => job.target),
  { name: 'By', by: (job) => job.submitted_by, cell: (job) => job.submitted_by },
  { name: 'Created', by: (job) => job.created, cell: (job) => moment(job.created) },
];

export function jobsPage(window: Window): Page {
  let jobs: Job[] = [];
  let more = false;
  let answered = ''; // the choice that `jobs` are of
  const query = () => ({ state: window.query('state') || 'all', group: window.query('group') });
  const choiceNow = () => JSON.stringify(query());
  const askFor = (wanted: ReturnType<typeof query>, limit: number, after?: string) =>
    ask<Jobs>(withParameters('jobs', { ...wanted, limit, after }), window.closed);

  async function showOlder(): Promise<void> {
    const chosen = choiceNow();
    const last = jobs[jobs.length - 1]?.job;
    try {
      const page = await askFor(query(), pageSize, last);
      // The list may have become another one meanwhile.
      if (chosen !== answered || last !== jobs[jobs.length - 1]?.job) return;
      jobs = withOlder(jobs, page.jobs);
      more = page.more;
    } catch (error) {
      if (window.closed.aborted) return;
      window.say(textOf(error));
    }
    window.show();
  }

  return {
    title: () => 'Jobs',
    async load() {
      if (window.farm.devices.size === 0) await loadDevices(window);
      const chosen = choiceNow();
      const wanted = query();
      // As many as are shown by then: older ones may have been asked for, also meanwhile.
      const shown = () => (chosen === answered ? jobs.length : 0);
      const sizeAfter = (had: number) => Math.min(largestPage, Math.max(pageSize, shown() - had));
      let page = await askFor(wanted, sizeAfter(0));
      let found = page.jobs;
      while (page.more && found.length < shown()) {
        const next = await askFor(wanted, sizeAfter(found.length), found[found.length - 1]!.job);
        if (next.jobs.length === 0) break; // the last one has been forgotten meanwhile
        page = next;
        found = withOlder(found, page.jobs);
      }
      jobs = found;
      more = page.more;
      answered = chosen;
    },
    change({ jobs: changes }) {
      const { state, group } = query();
      for (const job of changes?.changed ?? []) {
        if (!group || group === job.group) jobs = withJob(jobs, job, more);
      }
      if (state === 'open') jobs = jobs.filter((job) => !changes?.gone.includes(job.job));
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
              window.reload();
            },
          ),
          answered === choiceNow() ? null : formerChoice(),
          group ? h('p', {}, `Those of submission ${group}. `, link('/jobs', 'All')) : null,
        ),
        table({
          name: 'Jobs',
          columns: jobColumns(jobs),
          rows: jobs,
          key: (job) => job.job,
          order: window.query('sort'),
          sort: (order) => window.setQuery({ sort: order }),
          empty: state === 'open' ? 'No job is open.' : 'There is no job yet.',
        }),
        jobs.length === 0 ? firstJob(window.farm) : null,
        more ? button('Show older ones', () => void showOlder()) : null,
      ];
    },
  };
}
