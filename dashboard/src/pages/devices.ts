// SPDX-License-Identifier: Apache-2.0
// All devices: what each does, how it is, and what may be done about it.
import { act, ask, textOf } from '../api';
import type { Device, Devices, TunerLine, Tuners } from '../api_types';
import { h } from '../dom';
import { count, duration, instant, number, short } from '../format';
import { firstDevice } from '../first_steps';
import { addressOf } from '../links';
import { may, type Page, reloading, type Window } from '../page';
import { tunerCommand } from '../shell_commands';
import { type Column, table } from '../table';
import { badge, button, choice, command, confirmed, link, moment, section } from '../widgets';

const oftenest = 5000;

/** The one word for how a device is: what keeps it from work comes first. */
export function stateOf(device: Device): string {
  if (device.drained) return 'drained';
  if (device.activity === 'offline') return 'offline';
  return device.health !== 'good' ? device.health : device.activity;
}

/** Why it gets no work, and since when it is away; '' for one that works. */
export function reasonOf(device: Device): string {
  if (device.activity !== 'offline' || device.last_seen === null) return device.reason;
  const ago = duration((Date.now() - Date.parse(device.last_seen)) / 1000);
  return [`since ${instant(device.last_seen)}, ${ago} ago`, device.reason].filter(Boolean).join('; ');
}

/** How far its golden kernel is off what it usually takes; null where that is not known. */
export function driftOf(device: Device): number | null {
  const { golden } = device;
  return golden !== null && golden.baseline_us > 0 ? golden.us / golden.baseline_us - 1 : null;
}

export function signedPercent(share: number | null): string {
  return share === null ? '' : `${share >= 0 ? '+' : '−'}${Math.abs(share * 100).toFixed(1)}%`;
}

/** Buttons that drain or release a device's agent, for those who may. */
export function agentActions(window: Window, device: Device): HTMLElement | null {
  if (!may(window.farm, 'drain')) return null;
  const { agent } = device;
  const others = [...window.farm.devices.values()].filter((other) => other.agent === agent).length - 1;
  const too = others > 0 ? ` It has ${count(others)} more.` : '';

  async function change(what: 'drain' | 'release', body?: object) {
    try {
      await act('POST', `agents/${encodeURIComponent(agent)}/${what}`, body);
      window.say(what === 'drain' ? `${agent} is drained.` : `${agent} is released.`);
    } catch (error) {
      window.say(textOf(error));
    }
  }
  async function drain() {
    const answer = await confirmed(
      `Drain ${agent}?`,
      `It ends what it measures and gets no more work, until it is released.${too}`,
      'Drain',
      true,
    );
    if (answer) await change('drain', { reason: answer.text });
  }
  async function release() {
    if (await confirmed(`Release ${agent}?`, `It gets work again; quarantine of its devices ends.${too}`, 'Release'))
      await change('release');
  }
  const releases = device.drained || device.health === 'quarantined';
  return h(
    'span',
    { class: 'actions' },
    device.drained ? null : button('Drain…', () => void drain(), { 'aria-label': `Drain ${agent}` }),
    releases ? button('Release…', () => void release(), { 'aria-label': `Release ${agent}` }) : null,
  );
}

export function runningOn(device: Device): Node | string {
  const { running } = device;
  if (running === null) return '';
  const job = link(addressOf.job(running.job), running.model || running.job);
  if (!running.workload) return h('span', {}, 'runs ', job);
  const title = running.title || short(running.workload, 8);
  return h('span', {}, link(addressOf.workload(running.workload, { job: running.job }), title), ' of ', job);
}

function columns(window: Window): Column<Device>[] {
  return [
    { name: 'Device', by: (d) => d.device, cell: (d) => link(addressOf.device(d.device), d.device) },
    {
      name: 'State',
      by: (d) => stateOf(d),
      cell: (d) => [badge(stateOf(d)), reasonOf(d) ? h('span', { class: 'note block' }, reasonOf(d)) : null],
    },
    { name: 'Measures', cell: (d) => runningOn(d) },
    {
      name: 'Temperature',
      number: true,
      by: (d) => d.golden?.temperature_c ?? null,
      cell: (d) => (d.golden?.temperature_c ? `${number(d.golden.temperature_c, 2)} °C` : ''),
    },
    {
      name: 'Clock',
      by: (d) => d.governor,
      cell: (d) => [d.governor, d.golden?.throttled ? h('span', { class: 'note block' }, 'throttled') : null],
    },
    { name: 'Drift', number: true, by: (d) => driftOf(d), cell: (d) => signedPercent(driftOf(d)) },
    { name: 'Quarantines', number: true, by: (d) => d.quarantines, cell: (d) => count(d.quarantines) },
    { name: 'Candidates', number: true, by: (d) => d.candidates, cell: (d) => count(d.candidates) },
    { name: 'Wall', by: (d) => d.sandbox.level, cell: (d) => d.sandbox.level },
    { name: 'Is a', by: (d) => d.model, cell: (d) => h('span', { class: 'long', title: d.model }, d.model) },
    ...(may(window.farm, 'drain') ? [{ name: 'Change', cell: (d: Device) => agentActions(window, d) }] : []),
  ];
}

const tunerColumns: Column<TunerLine>[] = [
  { name: 'Tuner', by: (t) => t.tuner, cell: (t) => t.tuner },
  { name: 'State', by: (t) => tunerState(t), cell: (t) => badge(tunerState(t)) },
  {
    name: 'Tunes',
    cell: (t) => t.jobs.map((job, i) => [i === 0 ? '' : ', ', link(addressOf.job(job), short(job, 8))]),
  },
  { name: 'Last seen', by: (t) => t.last_seen, cell: (t) => (t.online ? '' : moment(t.last_seen)) },
];

function tunerState(tuner: TunerLine): string {
  return !tuner.online ? 'offline' : tuner.jobs.length > 0 ? 'tuning' : 'idle';
}

export async function loadDevices(window: Window): Promise<string> {
  const { devices } = window.farm;
  let page: Devices;
  const seen = new Map<string, Device>();
  let after = '';
  do {
    page = await ask<Devices>(`devices?limit=2000${after ? `&after=${encodeURIComponent(after)}` : ''}`, window.closed);
    for (const device of page.devices) seen.set(device.device, device);
    after = page.devices[page.devices.length - 1]?.device ?? '';
  } while (page.more && after);
  devices.clear();
  for (const [name, device] of seen) devices.set(name, device);
  return page.trouble;
}

export function devicesPage(window: Window): Page {
  const { devices } = window.farm;
  let tuners: TunerLine[] = [];
  const loadTuners = async () => {
    tuners = (await ask<Tuners>('tuners', window.closed)).tuners;
  };
  // No event tells of tuners, but what they take and end is told.
  const refreshTuners = reloading(window, loadTuners, oftenest);
  return {
    title: () => 'Devices',
    async load() {
      await Promise.all([loadDevices(window), loadTuners()]);
    },
    change({ jobs }) {
      if (jobs) refreshTuners();
    },
    render() {
      const wanted = window.query('state');
      const states = [...new Set([...devices.values()].map(stateOf))].sort();
      const rows = [...devices.values()].filter((device) => !wanted || stateOf(device) === wanted);
      return [
        h('h1', {}, 'Devices'),
        h(
          'div',
          { class: 'actions' },
          choice(
            'Show',
            [
              ['', 'all'],
              ...[...new Set([...states, ...(wanted ? [wanted] : [])])].map((state): [string, string] => [
                state,
                state,
              ]),
            ],
            wanted,
            (state) => window.setQuery({ state }),
          ),
          h('p', { class: 'note' }, `${count(rows.length)} of ${count(devices.size)}`),
        ),
        table({
          name: 'Devices',
          columns: columns(window),
          rows,
          key: (d) => d.device,
          order: window.query('sort') || 'Device',
          sort: (sort) => window.setQuery({ sort }),
          empty: devices.size > 0 ? 'No device is in this state.' : 'The farm has no device yet.',
        }),
        devices.size === 0 ? firstDevice(window.farm) : null,
        section(
          'Tuners',
          table({
            name: 'Tuners',
            columns: tunerColumns,
            rows: tuners,
            key: (t) => t.tuner,
            order: window.query('tuners'),
            sort: (order) => window.setQuery({ tuners: order }),
            empty: 'No tuner called in the last day. Jobs that tune wait until one is started:',
          }),
          tuners.length === 0
            ? command(tunerCommand(window.farm.session.tracker), 'The command that starts a tuner')
            : null,
        ),
      ];
    },
  };
}
