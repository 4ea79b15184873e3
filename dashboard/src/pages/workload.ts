// SPDX-License-Identifier: Apache-2.0
// One workload: how its search went, trial by trial, and what won. The address may name the job that it is seen from,
// which knows the roofline.
import { ApiError, ask } from '../api';
import type {
  Best,
  BestPage,
  Change,
  Importance,
  Job,
  JobDetail,
  JobWorkload,
  NewPoints,
  Point,
  Workload,
} from '../api_types';
import { bestSoFar } from '../best';
import { h } from '../dom';
import { count, instant, milliseconds, number, percent, short, speedup, words } from '../format';
import { deviceColumn, targetColumn } from '../key_columns';
import { addressOf } from '../links';
import { colourOfOutcome } from '../outcomes';
import { type Page, sparingly, type Window } from '../page';
import { withParameters } from '../parameters';
import { Plot, type PlotData, type Series } from '../plot';
import { predictionPlot } from '../prediction_plot';
import { earlierBest, figuresOf, type SearchFigures, type Trials } from '../search_figures';
import { shortDevices, shortTargets } from '../short_names';
import { type Column, table } from '../table';
import { bar, choice, code, facts, figures, formerChoice, link, moment, section } from '../widgets';

const mostPoints = 10_000;
const mostWinners = 200;
const oftenest = 1000;
const rarely = 15_000;
const listedPoints = 25;
const listedValues = 6;

const isMissing = (error: unknown) => error instanceof ApiError && error.status === 404;
const keyOf = (best: Best) => JSON.stringify([best.target, best.device, best.compiler]);

export function workloadPage(window: Window): Page {
  const digest = window.path[1]!;
  const path = `workloads/${encodeURIComponent(digest)}`;
  let workload: Workload;
  let trials: Trials = { points: [], older: false, devices: new Set(), winners: [] };
  let shown: Point[] = []; // as the plot has them
  let ofJob: { target: string; workload: JobWorkload } | null = null;
  let trialsSeen = -1;
  let importance: Importance | null = null;

  const filter = () => ({
    target: window.query('target'),
    device: window.query('device'),
    compiler: window.query('compiler'),
  });
  let answered = filter(); // the choice that `trials` are of
  const isChosen = (chosen: ReturnType<typeof filter>) => JSON.stringify(chosen) === JSON.stringify(filter());
  const byTime = () => window.query('x') === 'time';

  const plot = new Plot(
    {
      id: 'search-by-trial',
      xName: 'trial',
      xIsWhole: true,
      yName: 'time of the kernel',
      yLogarithmic: true,
      yText: (y) => milliseconds(y),
      describe: (i) => describe(i),
      open: (i) => open(i),
    },
    window.closed,
  );
  const plotByTime = new Plot(
    {
      id: 'search-by-time',
      xName: 'time',
      xIsTime: true,
      yName: 'time of the kernel',
      yLogarithmic: true,
      yText: (y) => milliseconds(y),
      describe: (i) => describe(i),
      open: (i) => open(i),
    },
    window.closed,
  );

  function describe(i: number): string {
    const point = shown[i];
    if (!point) return '';
    const what = point.kind === 'timed' ? milliseconds(point.median_ms) : words(point.kind);
    const notes = [
      point.is_default ? 'the default' : '',
      point.confirmed ? 'final comparison' : '',
      point.kind === 'timed' && !point.verified ? 'not verified' : '',
    ];
    return `Trial ${trials.points.indexOf(point) + 1}: ${what}${notes
      .filter(Boolean)
      .map((note) => `, ${note}`)
      .join('')}; ${instant(point.at)} on ${point.measured_by}. Enter or a click shows it.`;
  }
  const predictions = predictionPlot(window);
  const open = (i: number) => shown[i] && window.go(addressOf.candidate(shown[i].row));

  async function loadTrials(): Promise<void> {
    const chosen = filter();
    const newest = { ...chosen, order: 'newest' };
    const first = await ask<Workload>(withParameters(path, { ...newest, limit: mostPoints }), window.closed);
    const points = [...first.points];
    const devices = new Set(first.devices);
    let older = first.more;
    while (older && points.length < mostPoints) {
      const last = points[points.length - 1];
      if (last === undefined) break;
      const page = await ask<NewPoints>(
        withParameters(path, { ...newest, limit: mostPoints - points.length, before_row: last.row }),
        window.closed,
      );
      if (page.points.length === 0) break;
      points.push(...page.points);
      for (const device of page.devices) devices.add(device);
      older = page.more;
    }
    workload = first;
    trials = { points: points.reverse(), older, devices, winners: first.best };
    answered = chosen;
  }

  /** What a job says of a workload that no record is of yet. */
  function beginWithoutTrials({ operator, flops }: JobWorkload): void {
    workload = { points: [], devices: [], more: false, workload: digest, operator, flops, text: '', best: [] };
    trials = { points: [], older: false, devices: new Set(), winners: [] };
    answered = filter();
    importance = { trials: 0, decisions: [] };
  }

  /** Asks for a page of what is new. Returns whether there is more. */
  async function addPoints(): Promise<boolean> {
    const before = trials.points;
    const last = before[before.length - 1];
    if (last === undefined) return false;
    const page = await ask<NewPoints>(
      withParameters(path, { ...answered, limit: mostPoints, after_row: last.row }),
      window.closed,
    );
    // Others may have come meanwhile, of another choice perhaps.
    if (trials.points !== before || page.points.length === 0) return false;
    const points = [...before, ...page.points];
    trials = {
      points: points.slice(-mostPoints),
      older: trials.older || points.length > mostPoints,
      devices: new Set([...trials.devices, ...page.devices]),
      winners: trials.winners,
    };
    return page.more;
  }

  /** Returns whether some came. */
  async function addAllPoints(): Promise<boolean> {
    const before = trials.points;
    while (await addPoints());
    return trials.points !== before;
  }

  async function loadJob(): Promise<void> {
    const id = window.query('job');
    if (!id) return;
    const job = await ask<JobDetail>(`jobs/${encodeURIComponent(id)}`, window.closed).catch((error) => {
      if (isMissing(error)) return null; // jobs are forgotten, records are not
      throw error;
    });
    const mine = job?.workloads.find((known) => known.digest === digest);
    ofJob = job && mine ? { target: job.target, workload: mine } : null;
    trialsSeen = job?.trials ?? -1;
  }

  async function loadDecisions(): Promise<void> {
    const chosen = filter();
    const decisions = await ask<Importance>(withParameters(`${path}/importance`, chosen), window.closed);
    if (!isChosen(chosen)) return;
    importance = decisions;
    window.show();
  }

  /** Winners come with the trials that a page begins with; later ones change them. */
  async function loadWinners(): Promise<void> {
    const chosen = filter();
    const question = withParameters('records/best', { ...chosen, workload: digest, limit: mostWinners });
    const winners = await ask<BestPage>(question, window.closed);
    if (isChosen(chosen) && isChosen(answered)) trials = { ...trials, winners: winners.best };
  }

  /** What takes all trials to reckon. */
  async function loadSums(): Promise<void> {
    await Promise.all([loadWinners(), loadDecisions()]);
    window.show();
  }
  const refreshSums = sparingly(loadSums, rarely, window.closed);

  const refresh = sparingly(
    async () => {
      if (trials.points.length === 0) return window.reload();
      const [some] = await Promise.all([addAllPoints(), loadJob()]);
      window.show();
      if (some) refreshSums();
    },
    oftenest,
    window.closed,
  );

  /** What the job says, while no device is chosen: which one its own is, it does not say. */
  function shownJob(): JobWorkload | null {
    const { target, device, compiler } = answered;
    return ofJob && !device && !compiler && (!target || target === ofJob.target) ? ofJob.workload : null;
  }

  function series({ oneKey, defaultMs, rooflineMs }: SearchFigures): Series[] {
    const kinds = [...new Set(shown.map((point) => point.kind))].sort(
      (a, b) => Number(b === 'timed') - Number(a === 'timed') || a.localeCompare(b),
    );
    const dots = kinds.map(
      (kind): Series => ({
        name: kind === 'timed' ? 'a trial' : words(kind),
        colour: colourOfOutcome(kind),
        kind: 'dots',
        atTop: kind !== 'timed',
        y: shown.map((point) => (point.kind !== kind ? null : kind === 'timed' ? point.median_ms : 1)),
      }),
    );
    const level = (name: string, colour: string, ms: number | null): Series[] =>
      ms === null ? [] : [{ name, colour, kind: 'line', dashed: true, y: shown.map(() => ms) }];
    const best: Series = {
      name: 'best so far',
      colour: '--best',
      kind: 'steps',
      y: bestSoFar(shown, earlierBest(trials)),
    };
    return [
      ...dots,
      ...(oneKey ? [best] : []),
      ...level('default schedule', '--warn', defaultMs),
      ...level('roofline', '--text', rooflineMs),
    ];
  }

  function search(known: SearchFigures) {
    const { points, older } = trials;
    if (points.length === 0)
      return h('p', { class: 'note' }, 'Nothing of it has been measured yet, or nothing with this target and device.');
    shown = byTime() ? [...points].sort((a, b) => Date.parse(a.at) - Date.parse(b.at)) : points;
    const failed = points.filter((point) => point.kind !== 'timed').length;
    const times = known.oneKey
      ? `the best so far takes ${milliseconds(known.bestMs)}, the default ${milliseconds(known.defaultMs)}`
      : 'they are of several targets, devices or compilers';
    const data: PlotData = {
      label: `${count(points.length)} trials, ${count(failed)} of them failed; ${times}.`,
      x: byTime() ? shown.map((point) => Date.parse(point.at) / 1000) : shown.map((_point, i) => i + 1),
      series: series(known),
    };
    return [
      byTime() ? plotByTime.place(data) : plot.place(data),
      failed > 0 ? h('p', { class: 'note' }, 'Failures have no time: they stand at the upper edge.') : null,
      older ? h('p', { class: 'note' }, `The newest ${count(points.length)} are shown.`) : null,
    ];
  }

  const columns: Column<Point>[] = [
    { name: 'Candidate', number: true, by: (p) => p.row, cell: (p) => link(addressOf.candidate(p.row), String(p.row)) },
    { name: 'Outcome', by: (p) => p.kind, cell: (p) => words(p.kind) },
    { name: 'Time', number: true, by: (p) => p.median_ms, cell: (p) => milliseconds(p.median_ms) },
    {
      name: 'What it is',
      cell: (p) => [
        p.is_default ? 'default ' : '',
        p.confirmed ? 'final comparison ' : '',
        p.verified || p.kind !== 'timed' ? '' : 'not verified',
      ],
    },
    { name: 'Measured by', by: (p) => p.measured_by, cell: (p) => p.measured_by },
    { name: 'At', by: (p) => p.at, cell: (p) => moment(p.at) },
    {
      name: 'Beside the best',
      cell: (p) =>
        trials.winners[0] && trials.winners[0].row !== p.row
          ? link(addressOf.compare(trials.winners[0].row, p.row), `compare ${p.row}`)
          : '',
    },
  ];

  function listed() {
    const { points } = trials;
    const fastest = points
      .filter((point) => point.median_ms !== null)
      .sort((a, b) => a.median_ms! - b.median_ms!)
      .slice(0, listedPoints);
    const failures = points.filter((point) => point.median_ms === null).slice(-listedPoints);
    const order = window.query('sort');
    const sort = (wanted: string) => window.setQuery({ sort: wanted });
    return [
      table({
        name: 'The fastest trials',
        columns,
        rows: fastest,
        key: (p) => String(p.row),
        order,
        sort,
        empty: 'No trial has a time.',
      }),
      failures.length > 0
        ? h(
            'details',
            { 'data-key': 'failures' },
            h('summary', {}, `The newest ${count(failures.length)} failures`),
            table({ name: 'The newest failures', columns, rows: failures, key: (p) => String(p.row), empty: '' }),
          )
        : null,
      h('p', {}, link(addressOf.records({ workload: digest }), 'All records of this workload')),
    ];
  }

  const winnerColumns = (winners: Best[]): Column<Best>[] => [
    deviceColumn(
      winners,
      (b) => b.device,
      (b) => b.measured_by,
    ),
    { name: 'Winner', number: true, cell: (b) => link(addressOf.candidate(b.row), String(b.row)) },
    { name: 'Time', number: true, cell: (b) => milliseconds(b.median_ms) },
    { name: 'Default', number: true, cell: (b) => milliseconds(b.default_ms) },
    { name: 'Speed-up', number: true, cell: (b) => speedup(b.default_ms, b.median_ms) },
    { name: 'GFLOP/s', number: true, cell: (b) => number(b.gflops) },
    { name: 'Sizes', cell: (b) => b.sizes || 'fixed' },
    { name: 'Decided by', cell: (b) => (b.confirmed ? 'final comparison' : 'races') },
    { name: 'Records', number: true, cell: (b) => count(b.records) },
    targetColumn(winners, (b) => b.target),
  ];

  const decisionColumns: Column<Importance['decisions'][number]>[] = [
    { name: 'Decision', cell: (d) => d.name },
    { name: 'Explains', number: true, cell: (d) => [percent(d.share), bar(d.share, `How much ${d.name} explains`)] },
    { name: 'Best value', cell: (d) => d.values[0]?.value || 'none' },
    {
      name: 'Fastest trial by value',
      cell: (d) =>
        d.values
          .slice(0, listedValues)
          .map((v) => `${v.value || 'none'}: ${milliseconds(v.best_ms)}`)
          .join(', ') + (d.values.length > listedValues ? ', …' : ''),
    },
  ];

  function decisions() {
    if (importance === null) return h('p', { class: 'note' }, 'Asking…');
    return [
      h(
        'p',
        { class: 'note' },
        `How much of the differences between the times of ${count(importance.trials)} trials each decision explains alone, without what chance would.`,
      ),
      table({
        name: 'Decisions',
        columns: decisionColumns,
        rows: importance.decisions,
        key: (d) => d.name,
        empty: 'No trial says what was decided.',
      }),
    ];
  }

  function chooseKey() {
    const keys = new Map(trials.winners.map((best) => [keyOf(best), best]));
    const { target, device, compiler } = filter();
    const now = device || compiler ? JSON.stringify([target, device, compiler]) : target ? 'target' : '';
    const options: [string, string][] = [
      ['', 'all targets and devices'],
      ...(target ? [['target', `target ${target}`] as [string, string]] : []),
    ];
    const targets = shortTargets([...trials.winners.map((best) => best.target), target]);
    const devices = shortDevices([...trials.winners.map((best) => best.device), device]);
    for (const [key, best] of keys)
      options.push([key, `${targets.get(best.target)} on ${devices.get(best.device)}, ${best.compiler}`]);
    if (!options.some(([key]) => key === now))
      options.push([now, `target ${targets.get(target)} on ${devices.get(device)}`]);
    return choice('Measured with', options, now, (key) => {
      const [wantedTarget, wantedDevice, wantedCompiler]: [string, string, string] =
        key === 'target' ? [target, '', ''] : key ? JSON.parse(key) : ['', '', ''];
      importance = null;
      window.setQuery({ target: wantedTarget, device: wantedDevice, compiler: wantedCompiler });
      window.reload();
    });
  }

  /** What the job that it is seen from calls it, or else its operator. */
  const name = () => ofJob?.workload.title || workload.operator || short(digest);

  return {
    title: name,
    async load() {
      const job = loadJob();
      let measured = true;
      const found = loadTrials().catch(async (error) => {
        await job;
        if (!isMissing(error) || ofJob === null) throw error;
        measured = false;
        beginWithoutTrials(ofJob.workload);
      });
      await Promise.all([found, job]);
      if (measured) void loadDecisions().catch(refreshSums);
    },
    change({ jobs }: Change) {
      const wanted = window.query('job');
      // Of records, no event tells; they grow with the trials of a job.
      const isNew = (job: Job) => job.trials !== trialsSeen || trials.points.length === 0;
      const grown = jobs?.changed.some((job) => (wanted ? job.job === wanted && isNew(job) : true));
      if (grown) refresh();
    },
    render() {
      const known = figuresOf(trials, shownJob());
      const { bestMs, defaultMs, rooflineMs } = known;
      const job = window.query('job');
      return [
        h('h1', {}, name()),
        job ? h('p', {}, link(addressOf.job(job), 'Its job')) : null,
        figures(
          ['Best so far', milliseconds(bestMs)],
          ['Default', milliseconds(defaultMs)],
          ['Speed-up', speedup(defaultMs, bestMs)],
          ['Of roofline', percent(known.rooflineShare), rooflineMs ? `which is ${milliseconds(rooflineMs)}` : null],
          ['GFLOP/s', number(bestMs ? workload.flops / bestMs / 1e6 : null)],
          ['Trials', count(known.count)],
        ),
        known.oneKey
          ? null
          : h(
              'p',
              { class: 'note' },
              'These trials are of several targets, devices or compilers, whose times say nothing about each other. Choose one of them below for its figures.',
            ),
        section(
          'Search',
          h(
            'div',
            { class: 'actions' },
            choice(
              'Against',
              [
                ['trial', 'trials'],
                ['time', 'time'],
              ],
              byTime() ? 'time' : 'trial',
              (x) => window.setQuery({ x: x === 'time' ? x : '' }),
            ),
            chooseKey(),
            isChosen(answered) ? null : formerChoice(),
          ),
          search(known),
        ),
        section(
          'Winners',
          table({
            name: 'Winners',
            columns: winnerColumns(trials.winners),
            rows: trials.winners,
            key: (b) => String(b.row),
            empty: 'Nothing has won yet.',
          }),
        ),
        section('Predicted against measured', predictions(trials.points)),
        section('Which decisions matter', decisions()),
        section('Trials', listed()),
        section(
          'About the workload',
          facts(['Digest', digest], ['Operations of one run', count(workload.flops)]),
          workload.text ? code(workload.text, 'The workload as text') : null,
        ),
      ];
    },
  };
}
