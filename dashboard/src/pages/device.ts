// One device: how it is, how its golden kernel drifts, what keeps it from work.
import { ApiError } from '../api';
import { h } from '../dom';
import { count, instant, number, percent } from '../format';
import { addressOf } from '../links';
import type { Page, Window } from '../page';
import { Plot } from '../plot';
import { badge, facts, figures, link, section } from '../widgets';
import { agentActions, driftOf, loadDevices, runningOn, signedPercent, stateOf } from './devices';

export function devicePage(window: Window): Page {
  const name = window.query('name');
  const device = () => window.farm.devices.get(name);
  const history = new Plot(
    { id: 'golden', xName: 'check, the oldest first', xIsWhole: true, yName: 'golden kernel', yText: (y) => `${number(y)} µs`, height: 220, describe: (i) => `Check ${i + 1}: ${number(device()?.golden?.history_us[i])} µs` },
    window.closed,
  );

  function golden() {
    const check = device()?.golden;
    if (!check) return h('p', { class: 'note' }, 'It has not checked itself yet.');
    const usual = check.baseline_us;
    return [
      h('p', {}, badge(check.passed ? 'good' : 'failed'), ` Its newest check took ${number(check.us)} µs, usually ${number(usual)} µs (${signedPercent(driftOf(device()!))}). ${check.reason}`),
      check.history_us.length > 1
        ? history.place({
            label: `The golden kernel's times in the last ${count(check.history_us.length)} checks: between ${number(Math.min(...check.history_us))} and ${number(Math.max(...check.history_us))} µs.`,
            x: check.history_us.map((_us, i) => i + 1),
            series: [
              { name: 'a check', colour: '--dot-1', kind: 'dots', y: check.history_us },
              { name: 'what is usual', colour: '--warn', kind: 'line', dashed: true, y: check.history_us.map(() => usual) },
            ],
          })
        : null,
    ];
  }

  return {
    title: () => name,
    async load() {
      await loadDevices(window);
      if (!device()) throw new ApiError(404, 'not_found', `The tracker knows no device ${name}.`);
    },
    render() {
      const d = device();
      if (!d) return h('p', {}, 'The tracker does not know this device any more.');
      const missing = Object.entries(d.sandbox.missing);
      return [
        h('h1', {}, d.device),
        h('p', {}, badge(stateOf(d)), ' ', d.reason),
        agentActions(window, d),
        figures(
          ['Measures', runningOn(d) || 'nothing', d.running ? `since ${instant(d.running.since)}, attempt ${d.running.attempt}` : null],
          ['Temperature', d.golden?.temperature_c ? `${number(d.golden.temperature_c, 2)} °C` : '–', d.golden?.throttled ? 'it slows itself down' : null],
          ['Drift', signedPercent(driftOf(d)) || '–', d.golden ? `${count(d.golden.drifts)} checks in a row were off` : null],
          ['Candidates', count(d.candidates), `${count(d.batches)} batches`],
          ['Leases lost', count(d.losses)],
          ['Quarantines', count(d.quarantines), d.quarantined_since ? `since ${instant(d.quarantined_since)}` : null],
        ),
        section('Golden kernel', golden()),
        section(
          'About the device',
          facts(
            ['Agent', `${d.agent}, Hone ${d.agent_version}`],
            ['Is a', d.model],
            ['Threads', count(d.threads)],
            ['Clock governed by', d.governor],
            ['Target', d.target],
            ['Labels', Object.entries(d.labels).map(([label, value]) => `${label}=${value}`).join(' ')],
            ['Last seen', instant(d.last_seen)],
            ['Comes back at the earliest', d.retry_at ? instant(d.retry_at) : ''],
            ['Golden kernel goes apart by', d.golden && d.golden.baseline_us > 0 ? percent(d.golden.baseline_mad_us / d.golden.baseline_us) : ''],
            ['Wall', d.sandbox.level],
            ['Fingerprint', d.fingerprint],
          ),
          h('p', {}, link(addressOf.records({ device: d.fingerprint }), 'Records of devices like this one')),
        ),
        missing.length > 0 ? section('Layers of the wall that it lacks', facts(...missing.map(([layer, why]): [string, string] => [layer, why]))) : null,
      ];
    },
  };
}
