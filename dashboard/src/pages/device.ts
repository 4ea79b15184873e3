// SPDX-License-Identifier: Apache-2.0
// One device: how it is, how its golden kernel drifts, what keeps it from work.
import { ApiError, ask } from '../api';
import type { Drift } from '../api_types';
import { h } from '../dom';
import { count, instant, number, pairs, percent } from '../format';
import { addressOf } from '../links';
import type { Page, Window } from '../page';
import { withParameters } from '../parameters';
import { Plot } from '../plot';
import { badge, facts, figures, link, section } from '../widgets';
import { agentActions, driftOf, loadDevices, reasonOf, runningOn, signedPercent, stateOf } from './devices';

const mostSamples = 1000;

export function devicePage(window: Window): Page {
  const name = window.query('name');
  const device = () => window.farm.devices.get(name);
  let drift: Drift['points'] = [];
  const overDays = new Plot(
    {
      id: 'drift',
      xName: 'time',
      xIsTime: true,
      yName: 'time of the kernel',
      yText: (y) => `${number(y)} µs`,
      height: 260,
      describe: (i) => describe(i),
      open: (i) => drift[i] && window.go(addressOf.candidate(drift[i].row)),
    },
    window.closed,
  );
  function describe(i: number): string {
    const point = drift[i];
    if (!point) return '';
    const more = [
      point.golden_us === null ? '' : `golden kernel ${number(point.golden_us)} µs`,
      point.reference_us === null ? '' : `reference kernel ${number(point.reference_us)} µs`,
      point.drift === null ? '' : `drift in the visit ${percent(point.drift)}`,
      point.temperature_c === null ? '' : `${number(point.temperature_c, 2)} °C`,
      point.clock_hz === null ? '' : `${number(point.clock_hz / 1e9)} GHz`,
    ];
    return `${instant(point.at)}: ${more.filter(Boolean).join(', ')}`;
  }

  async function loadDrift(): Promise<void> {
    const shown = device();
    if (!shown) return;
    const answer = await ask<Drift>(
      withParameters('records/drift', { device: shown.fingerprint, measured_by: name, limit: mostSamples }),
      window.closed,
    );
    drift = answer.points.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
    window.show();
  }

  /** After its newest visit that is known here. */
  function newestClock(): string | null {
    const known = drift.filter((point) => point.clock_hz !== null);
    const newest = known[known.length - 1]?.clock_hz;
    return newest ? `${number(newest / 1e9)} GHz` : null;
  }

  function days() {
    const times = drift.map((point) => point.golden_us);
    const known = times.filter((us): us is number => us !== null);
    if (known.length < 2) return h('p', { class: 'note' }, 'The records have not enough of it yet.');
    return [
      overDays.place({
        label: `The golden kernel over ${count(drift.length)} measurements since ${instant(drift[0]!.at)}: between ${number(Math.min(...known))} and ${number(Math.max(...known))} µs.`,
        x: drift.map((point) => Date.parse(point.at) / 1000),
        series: [{ name: 'golden kernel when it measured', colour: '--dot-1', kind: 'dots', y: times }],
      }),
      h('p', { class: 'note' }, 'Some of its measurements, spread over all that the records have.'),
    ];
  }

  const history = new Plot(
    {
      id: 'golden',
      xName: 'check, the oldest first',
      xIsWhole: true,
      yName: 'golden kernel',
      yText: (y) => `${number(y)} µs`,
      height: 220,
      describe: (i) => `Check ${i + 1}: ${number(device()?.golden?.history_us[i])} µs`,
    },
    window.closed,
  );

  function golden() {
    const check = device()?.golden;
    if (!check) return h('p', { class: 'note' }, 'It has not checked itself yet.');
    const usual = check.baseline_us;
    return [
      h(
        'p',
        {},
        badge(check.passed ? 'good' : 'failed'),
        ` Its newest check took ${number(check.us)} µs; ${usual > 0 ? `it usually takes ${number(usual)} µs (${signedPercent(driftOf(device()!))})` : 'what it usually takes is not known yet'}. ${check.reason}`,
      ),
      check.history_us.length > 1
        ? history.place({
            label: `The golden kernel's times in the last ${count(check.history_us.length)} checks: between ${number(Math.min(...check.history_us))} and ${number(Math.max(...check.history_us))} µs.`,
            x: check.history_us.map((_us, i) => i + 1),
            series: [
              { name: 'a check', colour: '--dot-1', kind: 'dots', y: check.history_us },
              {
                name: 'what is usual',
                colour: '--warn',
                kind: 'line',
                dashed: true,
                y: check.history_us.map(() => usual),
              },
            ],
          })
        : null,
    ];
  }

  return {
    title: () => name,
    async load() {
      await loadDevices(window);
      void loadDrift().catch(() => undefined);
      if (!device()) throw new ApiError(404, 'not_found', `The tracker knows no device ${name}.`);
    },
    render() {
      const d = device();
      if (!d) return h('p', {}, 'The tracker does not know this device any more.');
      const missing = Object.entries(d.sandbox.missing);
      return [
        h('h1', {}, d.device),
        h('p', {}, badge(stateOf(d)), ' ', reasonOf(d)),
        agentActions(window, d),
        figures(
          [
            'Measures',
            runningOn(d) || 'nothing',
            d.running ? `since ${instant(d.running.since)}, attempt ${d.running.attempt}` : null,
          ],
          [
            'Temperature',
            d.golden?.temperature_c ? `${number(d.golden.temperature_c, 2)} °C` : '–',
            d.golden?.throttled ? 'it slows itself down' : null,
          ],
          ['Clock', newestClock() ?? (d.governor || '–'), newestClock() ? d.governor : null],
          [
            'Drift',
            signedPercent(driftOf(d)) || '–',
            d.golden && d.golden.drifts > 0 ? `${count(d.golden.drifts)} checks in a row were off` : null,
          ],
          ['Candidates', count(d.candidates), `${count(d.batches)} batches`],
          ['Leases lost', count(d.losses)],
          ['Quarantines', count(d.quarantines), d.quarantined_since ? `since ${instant(d.quarantined_since)}` : null],
        ),
        section('Golden kernel', golden()),
        section('Drift over days', days()),
        section(
          'About the device',
          facts(
            ['Agent', `${d.agent}, Hone ${d.agent_version}`],
            ['Is a', d.model],
            ['Threads', count(d.threads)],
            ['Clock governed by', d.governor],
            ['Target', d.target],
            ['Labels', pairs(d.labels)],
            ['Last seen', instant(d.last_seen)],
            ['Comes back at the earliest', d.retry_at ? instant(d.retry_at) : ''],
            [
              'Golden kernel goes apart by',
              d.golden && d.golden.baseline_us > 0 ? percent(d.golden.baseline_mad_us / d.golden.baseline_us) : '',
            ],
            ['Wall', d.sandbox.level],
            ['Fingerprint', d.fingerprint],
          ),
          h('p', {}, link(addressOf.records({ device: d.fingerprint }), 'Records of devices like this one')),
        ),
        missing.length > 0
          ? section(
              'Layers of the wall that it lacks',
              facts(...missing.map(([layer, why]): [string, string] => [layer, why])),
            )
          : null,
      ];
    },
  };
}
