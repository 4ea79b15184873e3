// SPDX-License-Identifier: Apache-2.0
// What a run of packages shows: its figures, the curve of a long one, the kernels of a profiled one. A page has one
// RunView and places it wherever it shows a run: of a run job, or beside a job that tunes.
import type { Run, RunKernel, RunPackage } from './api_types';
import { type Child, h } from './dom';
import { bytes, count, dash, milliseconds, number, percent, short } from './format';
import type { Window } from './page';
import { Plot, type Series } from './plot';
import { comparisonText, hasReport, operatorOf, type OperatorShare, operatorsOf, slowedAt, totalOf } from './runs';
import { type Column, table } from './table';
import { bar, choice, figures, section } from './widgets';

/** What is needed of a run; a report beside a job that tunes has no more. */
export type ShownRun = Pick<
  Run,
  'packages' | 'ratio' | 'temperature_before_c' | 'temperature_after_c' | 'clock_before_mhz' | 'clock_after_mhz'
>;

const colours = ['--dot-1', '--dot-3', '--dot-5', '--dot-4', '--dot-6', '--dot-7', '--dot-2'];
const colouredOperators = colours.length - 1; // the others share the last colour
const listedNodes = 3;

const nameOf = (one: RunPackage) => one.name || short(one.digest);

/** "45 °C, then 52 °C"; '' where it is not known. */
function change(before: number | null, after: number | null, text: (value: number) => string): string {
  return before === null || after === null ? '' : `${text(before)}, then ${text(after)}`;
}

/** What packages are compared in. `counts`: the ratio of two says nothing. */
type Aspect = [
  name: string,
  value: (one: RunPackage) => number | null | undefined,
  text: (value: number) => string,
  counts?: 'counts',
];

interface Placed extends RunKernel {
  at: number; // its place among the calls, from 0
}

export class RunView {
  private readonly layers: Plot;
  private readonly latency: Plot;
  private readonly temperature: Plot;
  private readonly clock: Plot;
  private run: ShownRun | null = null;

  constructor(private readonly window: Window) {
    const { closed } = window;
    this.layers = new Plot(
      {
        id: 'layers',
        xName: 'call, in the order of the model',
        xIsWhole: true,
        yName: 'time of the kernel',
        yText: (y) => milliseconds(y),
        height: 240,
        describe: (i) => this.describeKernel(i),
        open: (i) => this.choose(i),
      },
      closed,
    );
    const perMinute = (id: string, yName: string, yText: (y: number) => string) =>
      new Plot(
        {
          id,
          xName: 'minute',
          xIsWhole: true,
          yName,
          yText,
          height: 240,
          describe: (i) => this.describeMinute(i),
        },
        closed,
      );
    this.latency = perMinute('latency-by-minute', 'median of the minute', (y) => milliseconds(y));
    this.temperature = perMinute('temperature-by-minute', 'hottest sensor', (y) => `${number(y)} °C`);
    this.clock = perMinute('clock-by-minute', 'clock', (y) => `${number(y / 1000)} GHz`);
  }

  /** Figures, comparison, curves and kernels; nothing before there is a report. */
  place(run: ShownRun): Child {
    this.run = run;
    if (!hasReport(run)) return null;
    const { packages } = run;
    return [
      packages.length === 1 ? this.cards(packages[0]!) : this.comparison(),
      this.minutes(),
      this.profile(),
      packages.some((one) => (one.passed_over ?? []).length > 0) ? this.passedOver() : null,
    ];
  }

  private cards(one: RunPackage): HTMLElement {
    const { run } = this;
    return figures(
      ['Median', milliseconds(one.median_ms), `of ${count(one.runs)} runs`],
      ['Fastest', milliseconds(one.min_ms)],
      ['90% within', milliseconds(one.p90_ms)],
      ['99% within', milliseconds(one.p99_ms)],
      ['First run', milliseconds(one.first_run_ms), 'in a new process'],
      ['Load', milliseconds(one.load_ms)],
      ['Peak memory', bytes(one.peak_memory_bytes)],
      ['Of roofline', percent(one.roofline_share)],
      ['Threads', count(one.threads)],
      ...this.sensors(run!),
    );
  }

  private sensors(run: ShownRun): [string, Child, Child?][] {
    const temperature = change(run.temperature_before_c, run.temperature_after_c, (c) => `${number(c)} °C`);
    const clock = change(run.clock_before_mhz, run.clock_after_mhz, (mhz) => `${number(mhz / 1000)} GHz`);
    const entries: [string, Child][] = [
      ['Temperature', temperature],
      ['Clock', clock],
    ];
    return entries.filter(([, text]) => text !== '');
  }

  /** Several packages: what they took, side by side. */
  private comparison(): Child {
    const { packages, ratio } = this.run!;
    const [first, second] = packages;
    const aspects: Aspect[] = [
      ['Median', (one) => one.median_ms, milliseconds],
      ['Fastest', (one) => one.min_ms, milliseconds],
      ['90% within', (one) => one.p90_ms, milliseconds],
      ['99% within', (one) => one.p99_ms, milliseconds],
      ['First run', (one) => one.first_run_ms, milliseconds],
      ['Load', (one) => one.load_ms, milliseconds],
      ['Peak memory', (one) => one.peak_memory_bytes, (n) => bytes(n)],
      ['Runs', (one) => one.runs, (n) => count(n), 'counts'],
      ['Threads', (one) => one.threads, (n) => count(n), 'counts'],
    ];
    const beside = (value: (one: RunPackage) => number | null | undefined) => {
      const [a, b] = [value(first!), value(second!)];
      return a && b ? `${(b / a).toFixed(3)}×` : dash;
    };
    return [
      ratio
        ? figures(
            [
              'Time beside the first',
              `${ratio.ratio.toFixed(3)}×`,
              `${ratio.low.toFixed(3)} to ${ratio.high.toFixed(3)}`,
            ],
            [nameOf(first!), milliseconds(first!.median_ms), 'the first'],
            [nameOf(second!), milliseconds(second!.median_ms), 'the second'],
            ...this.sensors(this.run!),
          )
        : null,
      packages.length === 2
        ? h(
            'p',
            {},
            ratio
              ? `${nameOf(second!)} beside ${nameOf(first!)}${ratio.pairs > 0 ? `, from ${count(ratio.pairs)} pairs of runs in turns` : ''}: ${comparisonText(ratio)}.`
              : 'There were too few runs to compare the two: 40 of each are needed.',
          )
        : null,
      section(
        'Packages',
        table({
          name: 'Packages',
          columns: [
            { name: 'Figure', cell: ([name]) => name },
            ...packages.map((one, i) => ({
              name:
                nameOf(one) +
                (packages.filter((other) => nameOf(other) === nameOf(one)).length > 1 ? ` (${i + 1})` : ''),
              number: true,
              cell: ([, value, text]: Aspect) => {
                const known = value(one);
                return known === null || known === undefined ? dash : text(known);
              },
            })),
            ...(packages.length === 2
              ? [
                  {
                    name: 'Second / first',
                    number: true,
                    cell: ([, value, , counts]: Aspect) => (counts ? '' : beside(value)),
                  },
                ]
              : []),
          ],
          rows: aspects,
          key: ([name]) => name,
          empty: '',
        }),
      ),
    ];
  }

  private describeMinute(i: number): string {
    const texts = this.run!.packages.map((one) => {
      const minute = one.minutes?.[i];
      if (!minute) return '';
      const more = [
        `${milliseconds(minute.median_ms)} in ${count(minute.runs)} runs`,
        minute.temperature_c === null ? '' : `${number(minute.temperature_c)} °C`,
        minute.clock_mhz === null ? '' : `${number(minute.clock_mhz / 1000)} GHz`,
      ];
      return `${this.run!.packages.length > 1 ? `${nameOf(one)} ` : ''}${more.filter(Boolean).join(', ')}`;
    });
    return `Minute ${i + 1}: ${texts.filter(Boolean).join('; ')}`;
  }

  /** The curve of a run of minutes, and when it became slower. */
  private minutes(): Child {
    const { packages } = this.run!;
    const most = Math.max(...packages.map((one) => one.minutes?.length ?? 0));
    if (most === 0) return null;
    const x = Array.from({ length: most }, (_none, i) => i + 1);
    type Minute = NonNullable<RunPackage['minutes']>[number];
    const lines = (value: (minute: Minute) => number | null): Series[] =>
      packages.map((one, i) => ({
        name: packages.length > 1 ? nameOf(one) : 'median of the minute',
        colour: colours[i % colours.length]!,
        kind: 'line',
        y: x.map((minute) => (one.minutes?.[minute - 1] ? value(one.minutes[minute - 1]!) : null)),
      }));
    const isKnown = (series: Series[]) => series.some(({ y }) => y.some((value) => value !== null));
    const temperature = lines((minute) => minute.temperature_c);
    const clock = lines((minute) => minute.clock_mhz);
    const named = (series: Series[], name: string) =>
      packages.length > 1 ? series : series.map((one) => ({ ...one, name }));
    const slowed = packages
      .map((one): [RunPackage, number | null] => [one, slowedAt(one.minutes ?? [])])
      .filter(([, minute]) => minute !== null)
      .map(
        ([one, minute]) =>
          `${packages.length > 1 ? `${nameOf(one)}: from` : 'From'} minute ${minute} on it was more than 5% slower than before.`,
      );
    return section(
      'Over time',
      this.latency.place({
        label: `The median of each of ${count(most)} minutes.`,
        x,
        series: lines((minute) => minute.median_ms),
      }),
      h(
        'p',
        { class: 'note' },
        slowed.length > 0 ? slowed.join(' ') : 'No minute was more than 5% slower than the fastest one before it.',
      ),
      h(
        'div',
        { class: 'side-by-side' },
        isKnown(temperature)
          ? this.temperature.place({
              label: 'The hottest sensor, minute by minute.',
              x,
              series: named(temperature, 'hottest sensor'),
            })
          : null,
        isKnown(clock)
          ? this.clock.place({ label: 'The clock, minute by minute.', x, series: named(clock, 'clock') })
          : null,
      ),
    );
  }

  /** The package whose kernels are shown, and they. */
  private shownKernels(): RunKernel[] {
    const { packages } = this.run!;
    const wanted = packages[Number(this.window.query('package'))]?.kernels ?? [];
    return wanted.length > 0 ? wanted : (packages.find((one) => (one.kernels ?? []).length > 0)?.kernels ?? []);
  }

  private chosen(): number | null {
    const text = this.window.query('kernel');
    return /^\d+$/.test(text) && Number(text) < this.shownKernels().length ? Number(text) : null;
  }

  /** A kernel is chosen in the plot or in the table; the other shows it, and the address has it. */
  private choose(at: number): void {
    this.window.setQuery({ kernel: String(at) });
    // After the page is drawn with it.
    setTimeout(() => document.querySelector('tr[aria-current]')?.scrollIntoView({ block: 'nearest' }), 100);
  }

  private describeKernel(at: number): string {
    const kernels = this.shownKernels();
    const kernel = kernels[at];
    if (!kernel) return '';
    const share = percent(kernel.time_ms / totalOf(kernels));
    const nodes = kernel.nodes.join(', ');
    return `Call ${at + 1}: ${operatorOf(kernel.symbol)}, ${milliseconds(kernel.time_ms)}, ${share}${nodes ? `; ${short(nodes, 120)}` : ''}. Enter or a click marks it in the table.`;
  }

  private profile(): Child {
    const kernels = this.shownKernels();
    if (kernels.length === 0) return null;
    const operators = operatorsOf(kernels);
    const total = totalOf(kernels);
    const chosen = this.chosen();
    const colourOf = (operator: string) =>
      colours[
        Math.min(
          colouredOperators,
          operators.findIndex((one) => one.operator === operator),
        )
      ]!;
    const profiled = this.run!.packages.filter((one) => (one.kernels ?? []).length > 0);
    return [
      section(
        'Layers',
        profiled.length > 1
          ? choice(
              'Package',
              this.run!.packages.map((one, i) => [String(i), nameOf(one)]),
              this.window.query('package') || '0',
              (at) => this.window.setQuery({ package: at, kernel: '' }),
            )
          : null,
        this.layers.place({
          label: `The times of ${count(kernels.length)} kernel calls, together ${milliseconds(total)}; ${operators[0]!.operator} takes ${percent(operators[0]!.share)}.`,
          x: kernels.map((_kernel, i) => i + 1),
          series: this.layerSeries(kernels, operators, colourOf, chosen),
        }),
      ),
      h(
        'div',
        { class: 'main-and-side' },
        section('Kernels', this.kernelTable(kernels, total, chosen)),
        section('Operators', this.operatorTable(operators, colourOf)),
      ),
    ];
  }

  private layerSeries(
    kernels: RunKernel[],
    operators: OperatorShare[],
    colourOf: (operator: string) => string,
    chosen: number | null,
  ): Series[] {
    const of = (kernel: RunKernel) => operatorOf(kernel.symbol);
    const named = operators.slice(0, colouredOperators).map((one) => one.operator);
    const series = (name: string, colour: string, isIn: (kernel: RunKernel, at: number) => boolean): Series => ({
      name,
      colour,
      kind: 'bars',
      y: kernels.map((kernel, i) => (isIn(kernel, i) ? kernel.time_ms : null)),
    });
    return [
      ...named.map((operator) => series(operator, colourOf(operator), (kernel) => of(kernel) === operator)),
      ...(operators.length > colouredOperators
        ? [series('others', colours[colouredOperators]!, (kernel) => !named.includes(of(kernel)))]
        : []),
      ...(chosen === null
        ? []
        : [series(`call ${chosen + 1}, which is marked below`, '--text', (_kernel, i) => i === chosen)]),
    ];
  }

  private kernelTable(kernels: RunKernel[], total: number, chosen: number | null): HTMLElement {
    const placed = kernels.map((kernel, at): Placed => ({ ...kernel, at }));
    const severalTargets = new Set(kernels.map((kernel) => kernel.target)).size > 1;
    const columns: Column<Placed>[] = [
      {
        name: 'Call',
        number: true,
        by: (k) => k.at,
        cell: (k) =>
          h(
            'button',
            {
              type: 'button',
              class: 'plainly',
              onclick: () => this.choose(k.at),
              'aria-label': `Mark call ${k.at + 1}`,
            },
            String(k.at + 1),
          ),
      },
      {
        name: 'ONNX nodes',
        by: (k) => k.nodes.join(' '),
        cell: (k) => [
          h(
            'span',
            { class: 'nodes', title: k.nodes.join('\n') },
            k.nodes.slice(0, listedNodes).join(', ') || 'of no node',
            k.nodes.length > listedNodes ? ` and ${count(k.nodes.length - listedNodes)} more` : '',
          ),
        ],
      },
      {
        name: 'Operator',
        by: (k) => operatorOf(k.symbol),
        cell: (k) => h('span', { title: k.symbol }, operatorOf(k.symbol)),
      },
      { name: 'Time', number: true, by: (k) => k.time_ms, cell: (k) => milliseconds(k.time_ms) },
      {
        name: 'Share',
        number: true,
        by: (k) => k.time_ms,
        cell: (k) => [percent(k.time_ms / total), bar(k.time_ms / total, `Share of call ${k.at + 1}`)],
      },
      ...(severalTargets ? [{ name: 'Target', by: (k: Placed) => k.target, cell: (k: Placed) => k.target }] : []),
    ];
    return table({
      name: 'Kernels',
      columns,
      rows: placed,
      key: (k) => String(k.at),
      chosen: chosen === null ? undefined : String(chosen),
      order: this.window.query('sort') || 'Call',
      sort: (order) => this.window.setQuery({ sort: order }),
      empty: '',
    });
  }

  private operatorTable(operators: OperatorShare[], colourOf: (operator: string) => string): HTMLElement {
    return table({
      name: 'Operators',
      columns: [
        {
          name: 'Operator',
          cell: (o) => [
            h('span', { class: `mark ${colourOf(o.operator).slice(2)}`, 'aria-hidden': 'true' }),
            o.operator,
          ],
        },
        { name: 'Calls', number: true, cell: (o) => count(o.calls) },
        { name: 'Time', number: true, cell: (o) => milliseconds(o.time_ms) },
        {
          name: 'Share',
          number: true,
          cell: (o) => [percent(o.share), bar(o.share, `Share of ${o.operator}`)],
        },
      ],
      rows: operators,
      key: (o) => o.operator,
      empty: '',
    });
  }

  private passedOver(): HTMLElement {
    const lines = this.run!.packages.flatMap((one) => one.passed_over ?? []);
    return section(
      'Programs that the device cannot run',
      h(
        'ul',
        { class: 'plain' },
        [...new Set(lines)].map((line) => h('li', {}, line)),
      ),
    );
  }
}
