// SPDX-License-Identifier: Apache-2.0
// One fleet watch: how fast its package was every night on each device, and why that changed.
import { act, ask, textOf } from '../api';
import type { Night, Watch, WatchedDevice } from '../api_types';
import { type Child, h } from '../dom';
import { count, duration, instant, milliseconds, number, pairs } from '../format';
import { addressOf } from '../links';
import { verdictText } from '../nights';
import { may, type Page, reloading, type Window } from '../page';
import { Plot } from '../plot';
import { type Column, table } from '../table';
import { badge, button, confirmed, facts, link, moment, section } from '../widgets';
import { signedPercent } from './devices';
import { verdictOf } from './watches';

const oftenest = 5000;
const colours = ['--dot-1', '--dot-2', '--dot-3', '--dot-4', '--dot-5', '--dot-6', '--dot-7'];

/** What a device ran with, in a line. */
function environmentOf({ environment }: Night): string {
  if (environment === null) return '';
  const { kernel, governor, driver, boost } = environment;
  return pairs(Object.fromEntries(Object.entries({ kernel, governor, driver, boost }).filter(([, value]) => value)));
}

const nightColumns: Column<Night>[] = [
  { name: 'Due', by: (night) => night.due, cell: (night) => moment(night.due) },
  {
    name: 'Median',
    number: true,
    by: (night) => night.median_ms,
    cell: (night) => milliseconds(night.median_ms),
  },
  { name: 'Change', number: true, by: (night) => night.change, cell: (night) => signedPercent(night.change) },
  {
    name: 'Verdict',
    by: (night) => night.verdict,
    cell: (night) => [
      badge(verdictText(night.verdict)),
      night.accepted ? ' accepted' : null,
      night.cause ? h('span', { class: 'note block' }, night.cause) : null,
    ],
  },
  {
    name: 'Temperature',
    number: true,
    by: (night) => night.temperature_c,
    cell: (night) => (night.temperature_c === null ? '' : `${number(night.temperature_c, 2)} °C`),
  },
  {
    name: 'Clock',
    number: true,
    by: (night) => night.clock_mhz,
    cell: (night) => (night.clock_mhz === null ? '' : `${count(night.clock_mhz)} MHz`),
  },
  { name: 'With', cell: (night) => environmentOf(night) },
  { name: 'Job', cell: (night) => (night.job ? link(addressOf.job(night.job), night.job) : '') },
];

/** A plot of all devices over time, each with its own colour. */
class NightPlot {
  private points: { at: number; device: string; night: Night }[] = [];
  private readonly plot: Plot;

  constructor(window: Window) {
    this.plot = new Plot(
      {
        id: 'nights',
        xName: 'time',
        xIsTime: true,
        yName: 'median of a run',
        yText: milliseconds,
        height: 260,
        describe: (i) => {
          const point = this.points[i];
          if (!point) return '';
          return `${point.device}, ${instant(point.night.due)}: ${milliseconds(point.night.median_ms)}`;
        },
        open: (i) => this.points[i]?.night.job && window.go(addressOf.job(this.points[i].night.job)),
      },
      window.closed,
    );
  }

  place({ devices }: Watch): Child {
    this.points = devices
      .flatMap(({ device, nights }) =>
        nights
          .filter((night) => night.median_ms !== null)
          .map((night) => ({ at: Date.parse(night.ended) / 1000, device, night })),
      )
      .sort((a, b) => a.at - b.at);
    if (this.points.length < 2) {
      return h('p', { class: 'note' }, 'From the second measured night on, this shows how the time changed.');
    }
    return this.plot.place({
      label: `The median of a run in ${count(this.points.length)} measured nights.`,
      x: this.points.map(({ at }) => at),
      series: devices.map(({ device }, i) => ({
        name: device,
        colour: colours[i % colours.length]!,
        kind: 'dots',
        y: this.points.map((point) => (point.device === device ? point.night.median_ms : null)),
      })),
    });
  }
}

/** accept: takes the device's newest night as good. */
function nightsOf(window: Window, row: WatchedDevice, accept: () => void): Child {
  const newest = [...row.nights].reverse().find((night) => night.median_ms !== null);
  const isBad = newest !== undefined && (newest.verdict === 'slower' || newest.verdict === 'drift');
  return section(
    row.device,
    h('p', {}, ...verdictOf({ device: row })),
    isBad && !newest.accepted && may(window.farm, 'watch')
      ? h('div', { class: 'actions' }, button('Accept…', accept, { 'aria-label': `Accept ${row.device}` }))
      : null,
    table({
      name: `Nights on ${row.device}`,
      columns: nightColumns,
      rows: row.nights,
      key: (night) => `${night.due} ${night.job}`,
      order: window.query('sort') || '-Due',
      sort: (order) => window.setQuery({ sort: order }),
      empty: 'It was not measured here yet.',
    }),
  );
}

export function watchPage(window: Window): Page {
  const name = window.path[1]!;
  const path = `watches/${encodeURIComponent(name)}`;
  let watch: Watch | null = null;
  const load = async () => {
    watch = await ask<Watch>(path, window.closed);
  };
  const refresh = reloading(window, load, oftenest);
  const plot = new NightPlot(window);

  async function measure() {
    try {
      watch = await act<Watch>('POST', `${path}/run`);
      window.say(`${name} is measured now.`);
    } catch (error) {
      window.say(textOf(error));
    }
  }
  async function accept(device: string) {
    if (!(await confirmed(`Accept ${device}?`, 'Later nights are compared with the newest one, and with none before.', 'Accept')))
      return;
    try {
      watch = await act<Watch>('POST', `${path}/accept`, { device });
      window.say(`The newest night of ${device} is accepted.`);
    } catch (error) {
      window.say(textOf(error));
    }
  }
  async function remove() {
    if (!(await confirmed(`Remove ${name}?`, 'Its nights are deleted, and its open jobs are cancelled.', 'Remove')))
      return;
    try {
      await act('DELETE', path);
      window.go('/watches');
    } catch (error) {
      window.say(textOf(error));
    }
  }

  return {
    title: () => name,
    load,
    change({ jobs }) {
      if (jobs) refresh();
    },
    render() {
      if (watch === null) return null;
      return [
        h('h1', {}, name),
        facts(
          ['Package', watch.package.name],
          ['Measured', `every day at ${watch.at} UTC for ${duration(watch.seconds)}, next ${instant(watch.next)}`],
          ['A regression is', `more than ${number(watch.slower_than * 100)}% slower`],
          ['Added by', `${watch.submitted_by}, ${instant(watch.created)}`],
          ['Notices go to', watch.notify_url],
        ),
        may(window.farm, 'watch')
          ? h(
              'div',
              { class: 'actions' },
              button('Measure now', () => void measure()),
              button('Remove…', () => void remove()),
            )
          : null,
        section('Over time', plot.place(watch)),
        ...watch.devices.map((device) => nightsOf(window, device, () => void accept(device.device))),
      ];
    },
  };
}
