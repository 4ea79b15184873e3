// SPDX-License-Identifier: Apache-2.0
// The farm at a glance: what is tuning now and how far, trials per second, devices, what needs somebody.
import { ask } from '../api';
import type { Device, Devices, Overview, OverviewFigures } from '../api_types';
import { h } from '../dom';
import { bytes, count, dash, duration, instant, number, words } from '../format';
import { addressOf } from '../links';
import { reloading, type Page, type Window } from '../page';
import { firstDevice, firstJob } from '../first_steps';
import { Plot } from '../plot';
import { table } from '../table';
import { badge, figures, link, section } from '../widgets';
import { reasonOf, stateOf } from './devices';
import { jobColumns } from './jobs';

const total = (counts: Record<string, number>) => Object.values(counts).reduce((sum, value) => sum + value, 0);

const isTroubled = (device: Device) => device.health !== 'good' || device.drained || device.activity === 'offline';

export function overviewPage(window: Window): Page {
  const { farm } = window;
  const rates = new Plot(
    {
      id: 'rates',
      xName: 'time',
      yName: 'trials per second',
      xIsTime: true,
      xLeast: 60,
      yText: (y) => number(y),
      height: 180,
      describe: (i) => `minute from ${instant(minutes[i]?.begin)}: ${number(perSecond(minutes[i]))} trials per second`,
    },
    window.closed,
  );
  let minutes: Overview['minutes'] = [];
  const perSecond = (minute: Overview['minutes'][number] | undefined) =>
    minute ? minute.trials / minute.seconds : null;
  // Events bring the other figures of the overview.
  const refreshMinutes = reloading(
    window,
    async () => {
      minutes = (await ask<Overview>('overview', window.closed)).minutes;
    },
    10_000,
  );

  /** The geometric mean over the running jobs that know it. */
  function soFar(): string {
    const ratios = [...farm.jobs.values()]
      .filter((job) => job.state === 'running' && job.latency_ms_before && job.latency_ms_after)
      .map((job) => Math.log(job.latency_ms_before! / job.latency_ms_after!));
    return ratios.length === 0
      ? dash
      : `${Math.exp(ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length).toFixed(2)}×`;
  }

  function tried(overview: OverviewFigures) {
    const all = total(overview.outcomes);
    const failed = all - (overview.outcomes['timed'] ?? 0);
    return figures(
      ['Trials per second', number(overview.trials_per_second)],
      ['Running jobs', count(overview.jobs['running']), `${count(overview.jobs['queued'])} queued`],
      ['Speed-up so far', soFar(), 'of the jobs that run'],
      ['Devices measuring', count(overview.devices['measuring']), `of ${count(total(overview.devices))}`],
      ['Candidates since the start', count(all), all ? `${count(failed)} failed` : null],
      ['Batches on devices', count(overview.pieces_running), `${count(overview.pieces_queued)} wait`],
      ['Records', bytes(overview.records_bytes), `${bytes(overview.disk_free_bytes)} free`],
    );
  }

  function outcomes(overview: OverviewFigures) {
    const kinds = Object.entries(overview.outcomes).filter(([, n]) => n > 0);
    if (kinds.length === 0) return h('p', { class: 'note' }, 'Nothing has been measured since the tracker started.');
    return h(
      'ul',
      { class: 'chips' },
      kinds.map(([kind, n]) => h('li', {}, `${words(kind)} `, h('strong', {}, count(n)))),
    );
  }

  function devices() {
    const all = [...farm.devices.values()];
    if (all.length === 0) return firstDevice(farm);
    const states = new Map<string, number>();
    for (const device of all) {
      const state = stateOf(device);
      states.set(state, (states.get(state) ?? 0) + 1);
    }
    const troubled = all.filter(isTroubled).sort((a, b) => a.device.localeCompare(b.device));
    return [
      h(
        'ul',
        { class: 'chips' },
        [...states].sort().map(([state, n]) => h('li', {}, badge(state), ' ', h('strong', {}, count(n)))),
      ),
      troubled.length === 0
        ? h('p', { class: 'note' }, 'All of them are well.')
        : h(
            'ul',
            { class: 'plain' },
            troubled
              .slice(0, 12)
              .map((device) =>
                h(
                  'li',
                  { 'data-key': device.device },
                  link(addressOf.device(device.device), device.device),
                  ' ',
                  badge(stateOf(device)),
                  ' ',
                  reasonOf(device),
                ),
              ),
          ),
      h('p', {}, link('/devices', all.length === 1 ? 'The device' : `All ${count(all.length)} devices`)),
    ];
  }

  function running(overview: OverviewFigures) {
    const all = overview.jobs['running'] ?? 0;
    const jobs = [...farm.jobs.values()]
      .filter((job) => job.state === 'running')
      .sort((a, b) => (b.created ?? '').localeCompare(a.created ?? ''));
    return [
      table({
        name: 'Running jobs',
        columns: jobColumns(jobs).filter((column) => !['By', 'Created'].includes(column.name)),
        rows: jobs,
        key: (job) => job.job,
        empty: 'No job is running.',
      }),
      jobs.length === 0 ? firstJob(farm) : null,
      jobs.length < all
        ? h(
            'p',
            { class: 'note' },
            `${count(jobs.length)} of ${count(all)} are shown. `,
            link('/jobs?state=open', 'All that are open'),
          )
        : null,
    ];
  }

  return {
    title: () => 'Overview',
    async load() {
      const [overview, devices] = await Promise.all([
        ask<Overview>('overview', window.closed),
        ask<Devices>('devices?limit=2000', window.closed),
      ]);
      const { running: jobs, minutes: counted, ...rest } = overview;
      minutes = counted;
      farm.overview = rest;
      farm.jobs.clear();
      for (const job of jobs) farm.jobs.set(job.job, job);
      farm.devices.clear();
      for (const device of devices.devices) farm.devices.set(device.device, device);
    },
    change({ overview }) {
      if (overview) refreshMinutes();
    },
    render() {
      const { overview } = farm;
      if (overview === null) return null;
      const now = Date.parse(overview.time);
      return [
        h('h1', {}, 'Overview'),
        tried(overview),
        section('Running now', running(overview)),
        section(
          'Trials per second',
          minutes.length === 0
            ? h('p', { class: 'note' }, 'Nothing has been measured since the tracker started.')
            : rates.place({
                label: `Trials per second since ${instant(minutes[0]!.begin)}; now ${number(overview.trials_per_second)}.`,
                x: minutes.map((minute) => Date.parse(minute.begin) / 1000),
                series: [
                  {
                    name: 'all jobs, mean of each minute',
                    colour: '--busy',
                    kind: 'line',
                    y: minutes.map(perSecond),
                  },
                ],
              }),
        ),
        section('Devices', devices()),
        section('Outcomes since the start', outcomes(overview)),
        h('p', { class: 'note' }, `The tracker has run for ${duration((now - Date.parse(overview.started)) / 1000)}.`),
      ];
    },
  };
}
