// SPDX-License-Identifier: Apache-2.0
// One model: how fast it is on each device, how that changed from job to job, and how to compile it.
import { ask } from '../api';
import type { Job, Jobs } from '../api_types';
import { h } from '../dom';
import { count, instant, milliseconds, percent, speedup } from '../format';
import { withJob } from '../job_list';
import { addressOf } from '../links';
import { afterOf, beforeOf, history, type Place, placesOf } from '../model_history';
import type { Page, Window } from '../page';
import { withParameters } from '../parameters';
import { Plot } from '../plot';
import { compileCommand, lockCommand } from '../shell_commands';
import { type Column, table } from '../table';
import { badge, command, link, moment, section } from '../widgets';
import { jobColumns } from './jobs';

const mostJobs = 500;
const colours = ['--dot-1', '--dot-2', '--dot-3', '--dot-4', '--dot-5', '--dot-6', '--dot-7'];

/** By how much slower than the fastest earlier job of the same place is worth a mark. */
const slowerMark = 0.05;

function ratioOf(job: Job): number | null {
  const before = beforeOf(job);
  const after = afterOf(job);
  return before && after ? before / after : null;
}

const placeColumns: Column<Place>[] = [
  { name: 'Device', by: (place) => place.device, cell: (place) => place.device },
  {
    name: 'Target',
    by: (place) => place.target,
    cell: (place) => h('span', { class: 'long', title: place.target }, place.target),
  },
  { name: 'Latencies', by: (place) => place.kind, cell: (place) => place.kind },
  {
    name: 'Untuned',
    number: true,
    by: (place) => beforeOf(place.newest),
    cell: (place) => milliseconds(beforeOf(place.newest)),
  },
  {
    name: 'Tuned',
    number: true,
    by: (place) => afterOf(place.newest),
    cell: (place) => milliseconds(afterOf(place.newest)),
  },
  {
    name: 'Speed-up',
    number: true,
    by: (place) => ratioOf(place.newest),
    cell: (place) => speedup(beforeOf(place.newest), afterOf(place.newest)),
  },
  {
    name: 'Against the fastest before',
    number: true,
    by: (place) => place.slower,
    cell: (place) => {
      if (place.slower === null) return '';
      const text = `${place.slower > 0 ? '+' : '−'}${percent(Math.abs(place.slower))}`;
      return place.slower > slowerMark ? [badge('slower'), ` ${text}`] : text;
    },
  },
  { name: 'Jobs', number: true, by: (place) => place.jobs, cell: (place) => count(place.jobs) },
  {
    name: 'Newest',
    by: (place) => place.newest.ended ?? place.newest.created,
    cell: (place) => link(addressOf.job(place.newest.job), moment(place.newest.ended ?? place.newest.created)),
  },
];

export function modelPage(window: Window): Page {
  const name = window.path[1]!;
  let jobs: Job[] = [];
  let more = false;
  let points: Job[] = [];
  const overTime = new Plot(
    {
      id: 'history',
      xName: 'time',
      xIsTime: true,
      yName: 'latency, tuned',
      yText: milliseconds,
      height: 260,
      describe: (i) => {
        const job = points[i];
        return job ? `${instant(job.ended ?? job.created)}: ${milliseconds(afterOf(job))}` : '';
      },
      open: (i) => points[i] && window.go(addressOf.job(points[i].job)),
    },
    window.closed,
  );

  function latencies(places: Place[]) {
    const found = history(jobs, places);
    points = found.points;
    if (points.length < 2) {
      return h('p', { class: 'note' }, 'From the second tuning job on, this shows how the latency changed.');
    }
    return overTime.place({
      label: `The latency after each of ${count(points.length)} tuning jobs.`,
      x: found.x,
      series: found.series.map((y, i) => ({
        name: places[i]!.device,
        colour: colours[i % colours.length]!,
        kind: 'dots',
        y,
      })),
    });
  }

  return {
    title: () => name,
    async load() {
      const answer = await ask<Jobs>(withParameters('jobs', { model: name, limit: mostJobs }), window.closed);
      jobs = answer.jobs;
      more = answer.more;
    },
    change({ jobs: changes }) {
      for (const job of changes?.changed ?? []) {
        if (job.models.includes(name)) jobs = withJob(jobs, job, more);
      }
    },
    render() {
      const places = placesOf(jobs);
      const tuned = places[0]?.newest ?? jobs.find((job) => job.run === null);
      const { tracker } = window.farm.session;
      return [
        h('h1', {}, name),
        section(
          'By device',
          table({
            name: 'How fast it is on each device',
            columns: placeColumns,
            rows: places,
            key: (place) => place.key,
            order: window.query('places'),
            sort: (order) => window.setQuery({ places: order }),
            empty: 'No tuning job of this model has measured all of its kernels yet.',
          }),
        ),
        section('Latency over time', latencies(places)),
        section(
          'Jobs',
          table({
            name: 'Jobs of this model',
            columns: jobColumns(jobs),
            rows: jobs,
            key: (job) => job.job,
            order: window.query('sort'),
            sort: (order) => window.setQuery({ sort: order }),
            empty: 'The tracker keeps no job of this model.',
          }),
          more ? h('p', { class: 'note' }, `The newest ${count(mostJobs)}; older ones are among all jobs.`) : null,
        ),
        tuned
          ? section(
              'Use it',
              h('p', { class: 'note' }, 'Compiles the model with the fastest kernels of the records:'),
              command(compileCommand(tuned, tracker), 'The command that compiles the model'),
              h(
                'p',
                { class: 'note' },
                'Pins these kernels in a file, so that every later compilation takes the same:',
              ),
              command(lockCommand(tuned, tracker), 'The command that pins its kernels'),
              h('p', {}, link(addressOf.records({ model: tuned.model }), 'Its records')),
            )
          : null,
      ];
    },
  };
}
