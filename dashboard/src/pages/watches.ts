// SPDX-License-Identifier: Apache-2.0
// All fleet watches: packages that are measured again every night, a row for each device.
import { ask } from '../api';
import type { Watches } from '../api_types';
import { h } from '../dom';
import { firstDevice } from '../first_steps';
import { milliseconds } from '../format';
import { addressOf } from '../links';
import { rowsOf, sparkline, urgencyOf, verdictText, type WatchRow } from '../nights';
import { type Page, reloading, type Window } from '../page';
import { watchCommand } from '../shell_commands';
import { type Column, table } from '../table';
import { badge, command, link, moment } from '../widgets';
import { signedPercent } from './devices';

const oftenest = 5000;

/** The verdict of the newest night with its cause, and the job under way. */
export function verdictOf({ device }: Pick<WatchRow, 'device'>): Node[] {
  const shown: Node[] = [badge(verdictText(device.verdict))];
  if (device.cause) shown.push(h('span', { class: 'note block' }, device.cause));
  if (device.job) {
    const what = device.waiting_for ? `waits for ${device.waiting_for}` : 'is measured now';
    shown.push(h('span', { class: 'note block' }, link(addressOf.job(device.job), device.job), ` ${what}`));
  }
  return shown;
}

const columns: Column<WatchRow>[] = [
  {
    name: 'Watch',
    by: ({ watch }) => watch.name,
    cell: ({ watch }) => [
      link(addressOf.watch(watch.name), watch.name),
      h('span', { class: 'note block' }, watch.package.name),
    ],
  },
  {
    name: 'Device',
    by: ({ device }) => device.device,
    cell: ({ device }) => link(addressOf.device(device.device), device.device),
  },
  { name: 'Verdict', by: ({ device }) => urgencyOf(device.verdict), cell: verdictOf },
  {
    name: 'Median',
    number: true,
    by: ({ device }) => device.median_ms,
    cell: ({ device }) => milliseconds(device.median_ms),
  },
  {
    name: 'Change',
    number: true,
    by: ({ device }) => device.change,
    cell: ({ device }) => signedPercent(device.change),
  },
  {
    name: 'Nights',
    cell: ({ device }) =>
      device.nights.length === 0
        ? ''
        : h(
            'span',
            { class: 'nowrap', role: 'img', 'aria-label': `The last ${device.nights.length} nights; higher is slower` },
            sparkline(device.nights),
          ),
  },
  { name: 'Measured', by: ({ device }) => device.measured, cell: ({ device }) => moment(device.measured) },
  { name: 'Next', by: ({ watch }) => watch.next, cell: ({ watch }) => moment(watch.next) },
];

export function watchesPage(window: Window): Page {
  let rows: WatchRow[] = [];
  const load = async () => {
    rows = rowsOf((await ask<Watches>('watches', window.closed)).watches);
  };
  // No event tells of watches, but of the jobs that measure them.
  const refresh = reloading(window, load, oftenest);
  return {
    title: () => 'Watches',
    load,
    change({ jobs }) {
      if (jobs) refresh();
    },
    render() {
      const { farm } = window;
      const device = [...farm.devices.values()].find((one) => one.activity !== 'offline');
      return [
        h('h1', {}, 'Watches'),
        table({
          name: 'Watches',
          columns,
          rows,
          key: ({ watch, device: { device: name } }) => `${watch.name} ${name}`,
          order: window.query('sort') || 'Verdict',
          sort: (order) => window.setQuery({ sort: order }),
          empty: 'No package is measured every night yet. In a folder that has a package, this adds one:',
        }),
        rows.length === 0
          ? command(
              watchCommand(farm.session.tracker, device?.device ?? ''),
              'The command that has a package measured every night',
            )
          : null,
        rows.length === 0 && farm.devices.size === 0 ? firstDevice(farm) : null,
      ];
    },
  };
}
