// SPDX-License-Identifier: Apache-2.0
// Parts of the dashboard that need no browser: taking events apart, numbers in words, sorting, what plots are made of.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const dashboard = fileURLToPath(new URL('../../dashboard', import.meta.url));
const require = createRequire(`${dashboard}/package.json`);
const { build } = createRequire(require.resolve('vite'))('esbuild');

// Types go, and imports of styles and of what needs a window are never run here.
const bundled = await build({
  stdin: {
    contents: `
      export { EventParser } from './src/stream';
      export * as format from './src/format';
      export { sorted } from './src/table';
      export { bestSoFar } from './src/best';
      export { earlierBest, figuresOf } from './src/search_figures';
      export { withJob, withOlder } from './src/job_list';
      export { history, placesOf } from './src/model_history';
      export { nearestAtX } from './src/plot_points';
      export { labelled, logarithmicRange, logarithmicSplits } from './src/plot_scale';
      export { ApiError, keyIn } from './src/api';
      export { Loading } from './src/loading';
      export { predictedOf, rankCorrelation } from './src/predictions';
      export { countingRepeats, histogram } from './src/repeats';
      export { withParameters } from './src/parameters';
      export * as runs from './src/runs';
      export * as shell from './src/shell_commands';
      export * as nights from './src/nights';
      export { shortDevices, shortTargets } from './src/short_names';
    `,
    resolveDir: dashboard,
  },
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  write: false,
  define: { 'location.protocol': '"http:"' },
});
const parts = await import(
  `data:text/javascript;base64,${Buffer.from(bundled.outputFiles[0].text).toString('base64')}`
);
const { format } = parts;

test('a line of blocks shows nights, and those that did not run', () => {
  const line = (...times) => parts.nights.sparkline(times.map((median_ms) => ({ median_ms })));
  assert.equal(line(10, 20, null, 15), '▁█·▅');
  assert.equal(line(10, 10.01, 10), '▁▁▁', 'noise is no change');
  assert.equal(line(null, null), '··');
});

test('what is slower comes first', () => {
  const order = ['ok', null, 'slower', 'changed', 'drift', 'did_not_run', 'faster'];
  const sorted = [...order].sort((a, b) => parts.nights.urgencyOf(a) - parts.nights.urgencyOf(b));
  assert.deepEqual(sorted, ['slower', 'drift', 'changed', 'did_not_run', 'faster', 'ok', null]);
  assert.equal(parts.nights.verdictText('did_not_run'), 'did not run');
});

test('the command that adds a watch names the device', () => {
  assert.equal(
    parts.shell.watchCommand('unix:/x', 'board/cpu'),
    'hone watch-fleet add nightly MODEL.hone --device board/cpu --tracker unix:/x',
  );
});

test('labels are as they were given', () => {
  assert.equal(format.pairs({ rpi4: '', room: 'lab' }), 'rpi4 room=lab');
});

test('events come apart wherever the stream is cut', () => {
  const stream = 'id: b-1\nevent: reset\ndata: {}\n\n: \n\nid: b-2\nevent: change\ndata: {"jobs":1}\n\n';
  for (let cut = 0; cut <= stream.length; ++cut) {
    const parser = new parts.EventParser();
    const taken = [];
    for (const piece of [stream.slice(0, cut), stream.slice(cut)])
      parser.feed(piece, (name, data) => taken.push([name, data]));
    assert.deepEqual(
      taken,
      [
        ['reset', '{}'],
        ['change', '{"jobs":1}'],
      ],
      `cut at ${cut}`,
    );
    assert.equal(parser.lastId, 'b-2');
  }
});

test('an event that has not ended is not taken, and its id not either', () => {
  const parser = new parts.EventParser();
  parser.feed('id: b-1\nevent: change\ndata: {}\n', () => assert.fail());
  assert.equal(parser.lastId, '');
});

test('numbers have three digits that count, or all before the point', () => {
  assert.equal(format.number(1234.5), '1,235');
  assert.equal(format.number(0.012345), '0.0123');
  assert.equal(format.number(0), '0');
  for (const unknown of [null, undefined, NaN, Infinity]) assert.equal(format.number(unknown), format.dash);
});

test('times have the unit that suits', () => {
  assert.equal(format.milliseconds(1500), '1.50 s');
  assert.equal(format.milliseconds(12), '12.0 ms');
  assert.equal(format.milliseconds(0.0034), '3.40 µs');
  assert.equal(format.milliseconds(null), format.dash);
  assert.equal(format.duration(59.6), '1 min 0 s');
  assert.equal(format.duration(7260), '2 h 1 min');
  assert.equal(format.speedup(4, 2), '2.00×');
  assert.equal(format.speedup(null, 2), format.dash);
  assert.equal(format.bytes(1536), '1.50 KiB');
});

test('rows are sorted, and what is not known comes last, up and down', () => {
  const columns = [{ name: 'ms', by: (row) => row.ms, cell: () => '' }];
  const rows = [{ ms: 2 }, { ms: null }, { ms: 10 }, { ms: 1 }];
  const by = (order) => parts.sorted(rows, columns, order).map((row) => row.ms);
  assert.deepEqual(by('ms'), [1, 2, 10, null]);
  assert.deepEqual(by('-ms'), [10, 2, 1, null]);
  assert.deepEqual(by(''), [2, null, 10, 1]);
});

test('the best so far is of verified times alone', () => {
  const point = (median_ms, verified = true) => ({ median_ms, verified });
  assert.deepEqual(parts.bestSoFar([point(null), point(5), point(1, false), point(7), point(3)]), [null, 5, 5, 5, 3]);
});

const trial = (row, median_ms, is_default = false) => ({ row, median_ms, is_default, verified: true });
const winner = (row, median_ms, default_ms, records = 2) => ({ row, median_ms, default_ms, records });

test('times of several devices or compilers make no figures', () => {
  const two = {
    points: [trial(1, 4000, true), trial(2, 1)],
    older: false,
    devices: new Set(['a', 'b']),
    winners: [winner(1, 4000, 4000), winner(2, 1, 1)],
  };
  const job = { default_ms: 8, roofline_ms: 0.5, roofline_share: 0.5 };
  const none = { oneKey: false, bestMs: null, defaultMs: null, rooflineMs: null, rooflineShare: null, count: 2 };
  assert.deepEqual(parts.figuresOf(two, job), none);
  assert.deepEqual(parts.figuresOf({ ...two, devices: new Set(['a']) }, job), none, 'two compilers');
  const one = { ...two, devices: new Set(['a']), winners: [winner(2, 1, 4000)] };
  const { oneKey, bestMs, defaultMs, rooflineMs } = parts.figuresOf(one, null);
  assert.deepEqual([oneKey, bestMs, defaultMs, rooflineMs], [true, 1, 4000, null]);
  const known = parts.figuresOf(one, job);
  assert.deepEqual([known.defaultMs, known.rooflineMs, known.rooflineShare], [8, 0.5, 0.5], 'the job says more');
});

test('of more trials than are shown the figures are of all', () => {
  const search = {
    points: [trial(11, 5), trial(12, 4)],
    older: true,
    devices: new Set(['a']),
    winners: [winner(3, 2, 8, 20_000)],
  };
  const { bestMs, defaultMs, count } = parts.figuresOf(search, null);
  assert.deepEqual([bestMs, defaultMs, count], [2, 8, 20_000]);
  assert.deepEqual(parts.bestSoFar(search.points, parts.earlierBest(search)), [2, 2]);
  const inside = { ...search, winners: [winner(12, 4, 8, 20_000)] };
  assert.equal(parts.earlierBest(inside), null, 'it is among those that are shown');
  assert.equal(parts.figuresOf({ ...search, older: false }, null).count, 2);
});

test('a job that changed stands where it belongs, and no job stands twice', () => {
  const job = (name, created, state = 'queued') => ({ job: name, created: `2026-01-0${created}T00:00:00.000Z`, state });
  const names = (jobs) => jobs.map((one) => one.job).join('');
  const list = [job('d', 4), job('c', 3)];
  assert.equal(names(parts.withJob(list, job('e', 5), true)), 'edc', 'a new one');
  assert.equal(names(parts.withJob(list, job('a', 1), true)), 'dc', 'it comes with the older ones');
  assert.equal(names(parts.withJob(list, job('a', 1), false)), 'dca', 'there are no older ones');
  assert.equal(parts.withJob(list, job('c', 3, 'running'), true)[1].state, 'running');
  assert.equal(names(parts.withOlder(list, [job('c', 3), job('b', 2)])), 'dcb');
});

test('of points with the same x the nearest is meant', () => {
  const x = [1, 2, 2, 2, 3];
  const distances = [0, 5, 1, 3, 0];
  for (const at of [1, 2, 3])
    assert.equal(
      parts.nearestAtX(x, at, (i) => distances[i]),
      2,
    );
  assert.equal(
    parts.nearestAtX(x, 0, (i) => distances[i]),
    0,
  );
  assert.equal(
    parts.nearestAtX(x, 4, (i) => distances[i]),
    4,
  );
  assert.equal(
    parts.nearestAtX(x, 3, () => Infinity),
    1,
    'none has a distance',
  );
});

test('a key is what is nothing else', () => {
  assert.equal(parts.keyIn('http://127.0.0.1:9191/#key=0af9'), '0af9');
  assert.equal(parts.keyIn('#key=0af9'), '0af9');
  assert.equal(parts.keyIn('0af9'), '0af9');
  for (const other of ['', '#main', 'http://127.0.0.1:9191/#key=…', '#key=', 'a token'])
    assert.equal(parts.keyIn(other), null);
});

// What a page that answers `load` so is told, until it has loaded `times` times or failed.
function loadingOf(load, times) {
  const told = { loaded: [], delayed: 0, failed: [] };
  let loading;
  const over = new Promise((resolve) => {
    loading = new parts.Loading(
      { load },
      new AbortController().signal,
      {
        loaded: (meanwhile) => told.loaded.push(meanwhile) === times && resolve(),
        delayed: () => ++told.delayed,
        failed: (error) => resolve(told.failed.push(error)),
      },
      0,
    );
  });
  return { loading, told, over };
}

test('what changes while a page loads is told after its answer', async () => {
  let answer;
  const { loading, told, over } = loadingOf(() => new Promise((resolve) => (answer = resolve)), 1);
  loading.note('before');
  loading.load();
  loading.note('meanwhile');
  answer();
  await over;
  assert.deepEqual(told.loaded, [['meanwhile']]);
});

test('a page that should load while it does loads once more', async () => {
  let asked = 0;
  const { loading, over } = loadingOf(async () => ++asked, 2);
  loading.load();
  loading.load();
  loading.load();
  await over;
  assert.equal(asked, 2);
});

test('what is refused for the moment is asked for again, what is refused for good is not', async () => {
  const refused = [0, 429, 503].map((status) => new parts.ApiError(status, '', ''));
  const passing = loadingOf(async () => {
    if (refused.length > 0) throw refused.shift();
  }, 1);
  passing.loading.load();
  await passing.over;
  assert.deepEqual([passing.told.delayed, passing.told.failed], [3, []]);
  const gone = new parts.ApiError(404, '', '');
  const lasting = loadingOf(() => Promise.reject(gone), 1);
  lasting.loading.load();
  await lasting.over;
  assert.deepEqual([lasting.told.delayed, lasting.told.failed], [0, [gone]]);
});

test('of predictions those count that have a time beside them, and ranks are compared', () => {
  const point = (predicted_ms, median_ms) => ({ predicted_ms, median_ms });
  const of = (...points) => parts.predictedOf(points.map(([a, b]) => point(a, b)));
  assert.deepEqual(of([3, 1], [null, 2], [1, null], [2, 5]), [point(2, 5), point(3, 1)]);
  assert.equal(parts.rankCorrelation(of([1, 10], [2, 20], [3, 1000])), 1);
  assert.equal(parts.rankCorrelation(of([1, 30], [2, 20], [3, 10])), -1);
  assert.equal(parts.rankCorrelation(of([1, 5], [2, 5], [3, 5])), null);
  assert.equal(parts.rankCorrelation(of([1, 1], [2, 2])), null);
  const tied = parts.rankCorrelation(of([1, 1], [1, 2], [2, 3], [3, 4]));
  assert.ok(Math.abs(tied - 0.9487) < 1e-4, 'equal ones share ranks');
});

test('a histogram counts every time once', () => {
  const { x, y } = parts.histogram([1, 1, 2, 5], 1, 5);
  assert.equal(x.length, y.length);
  assert.equal(
    y.reduce((sum, n) => sum + n, 0),
    4,
  );
  assert.equal(y[0], 2);
  assert.equal(y[y.length - 1], 1);
  assert.equal(parts.histogram([3, 3], 3, 3).y[0], 2);
});

test('of a final comparison the repeats count that were taken in turns, where three or more were', () => {
  const timing = (seconds, first_interleaved) => ({ timing: { seconds, first_interleaved } });
  assert.deepEqual(parts.countingRepeats(timing([1, 2, 3, 4], 1)), [2000, 3000, 4000]);
  assert.deepEqual(parts.countingRepeats(timing([1, 2, 3, 4], 2)), [1000, 2000, 3000, 4000]);
  assert.deepEqual(parts.countingRepeats(timing([1, 2, 3], 0)), [1000, 2000, 3000]);
  assert.deepEqual(parts.countingRepeats(timing([1, 2], 2)), [1000, 2000]);
  assert.deepEqual(parts.countingRepeats({}), []);
});

test('parameters that are empty are left out, others are quoted', () => {
  assert.equal(parts.withParameters('a', { b: '', c: undefined, d: 'x y&z' }), 'a?d=x+y%26z');
  assert.equal(parts.withParameters('a', {}), 'a');
});

// Times of kernels from 1 ns to 1000 s, in ms, and the ranges with a mantissa near 10, for which uPlot's lines have no end.
test('logarithmic axes have a few lines, within the axis, over all ranges', () => {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let i = 0; i < 100_000; ++i) {
    const mantissa = i % 2 === 0 ? 9.5 + random() / 2 : 1 + 9 * random();
    const low = mantissa * 10 ** Math.floor(-6 + 12 * random());
    const most = low * (i % 3 === 0 ? 1 + random() : 10 ** (6 * random()));
    const [from, to] = parts.logarithmicRange(low, most, 1.1);
    const splits = parts.logarithmicSplits(from, to);
    const range = `${from} to ${to}`;
    assert.ok(splits.length >= 1 && splits.length <= 9 * 9, `${splits.length} lines for ${range}`);
    assert.ok(
      splits.every((split, at) => split >= from && split <= to && (at === 0 || split > splits[at - 1])),
      `${splits} for ${range}`,
    );
    const texts = parts.labelled(splits).filter((split) => split !== null);
    assert.ok(texts.length >= 1 && texts.length <= 12, `${texts} of ${splits} for ${range}`);
  }
});

test('a logarithmic axis without positive values has some range', () => {
  for (const [least, most] of [
    [null, null],
    [0, 0],
    [-1, 5],
    [NaN, 1],
    [1, Infinity],
    [2, 1],
  ])
    assert.deepEqual(parts.logarithmicRange(least, most, 1.1), [0.1, 1]);
  assert.deepEqual(parts.logarithmicSplits(0, 1), []);
  assert.deepEqual(parts.logarithmicSplits(1, 1), [1]);
});

test('a model has a place for each device, and its newest job is held against the fastest before', () => {
  const job = (id, devices, after, ended) => ({
    job: id,
    run: null,
    confirmation: null,
    devices,
    target: 'cpu',
    latency_ms_after: after,
    ended: ended === null ? null : `2026-11-0${ended}T00:00:00Z`,
  });
  const jobs = [
    job('f', ['pi'], null, null), // it still runs
    job('e', ['pi'], 11, 5),
    job('d', ['jetson'], 4, 4),
    job('c', ['pi'], 12, 3),
    job('b', ['pi'], 10, 2),
    { ...job('a', ['pi'], null, 1), run: { packages: [] } },
  ];
  const places = parts.placesOf(jobs);
  assert.deepEqual(
    places.map(({ device, newest, jobs: number }) => [device, newest.job, number]),
    [
      ['pi', 'e', 3],
      ['jetson', 'd', 1],
    ],
  );
  assert.ok(Math.abs(places[0].slower - 0.1) < 1e-9);
  assert.equal(places[1].slower, null);
  const { points, series } = parts.history(jobs, places);
  assert.deepEqual(
    points.map(({ job: id }) => id),
    ['b', 'c', 'd', 'e'],
  );
  assert.deepEqual(series, [
    [10, 12, null, 11],
    [null, null, 4, null],
  ]);
});

const packageOf = (name, fields = {}) => ({ name, digest: 'd', bytes: 1, ...fields });

test('a run is called by what it is', () => {
  const run = { kind: 'bench', device: 'rpi4/cpu', packages: [packageOf('net.hone')] };
  assert.equal(parts.runs.runName(run), 'Bench of net.hone');
  assert.equal(
    parts.runs.runName({ ...run, kind: 'comparison', packages: [packageOf('old.hone'), packageOf('new.hone')] }),
    'new.hone beside old.hone',
  );
  assert.equal(parts.runs.jobName({ run, model: 'net.hone', job: 'j1' }), 'Bench of net.hone');
  assert.equal(parts.runs.jobName({ run: null, model: '', job: 'j1' }), 'j1');
  assert.equal(parts.runs.placeOf({ run, devices: ['rpi4'] }), 'rpi4/cpu');
  assert.equal(parts.runs.placeOf({ run: null, devices: ['rpi4', 'jetson'] }), 'rpi4 or jetson');
});

test('a comparison claims no difference that is not sure', () => {
  assert.match(
    parts.runs.comparisonText({ ratio: 1.021, low: 1.012, high: 1.031, pairs: 40 }),
    /^2.1% slower: between 1.2% slower/,
  );
  assert.match(parts.runs.comparisonText({ ratio: 0.5, low: 0.48, high: 0.52, pairs: 40 }), /^50% faster/);
  assert.match(
    parts.runs.comparisonText({ ratio: 1.01, low: 0.99, high: 1.03, pairs: 40 }),
    /^no sure difference: between 1.0% faster/,
  );
});

test('kernels are summed by operator, the longest first', () => {
  const kernel = (symbol, time_ms) => ({ symbol, time_ms, nodes: [], target: 'cpu' });
  const kernels = [kernel('hone_k0_add', 1), kernel('hone_k1_conv2d', 2), kernel('hone_k12_conv2d', 1)];
  assert.deepEqual(parts.runs.operatorsOf(kernels), [
    { operator: 'conv2d', calls: 2, time_ms: 3, share: 0.75 },
    { operator: 'add', calls: 1, time_ms: 1, share: 0.25 },
  ]);
  assert.equal(parts.runs.operatorOf('another'), 'another');
});

test('a board that slows itself down is seen in the minutes', () => {
  const minutes = (...medians) => medians.map((median_ms) => ({ median_ms }));
  assert.equal(parts.runs.slowedAt(minutes(10, 9.9, 10.2, 10.5, 12)), 4);
  assert.equal(parts.runs.slowedAt(minutes(12, 11, 10, 10.4)), null);
  assert.equal(parts.runs.slowedAt([]), null);
});

test('the command that repeats a run has all that it was asked for', () => {
  const run = {
    kind: 'bench',
    device: 'a/cpu',
    packages: [packageOf('my net.hone')],
    inputs: null,
    shapes: ['x=1,3'],
    seconds: 10,
    threads: 2,
    profile: false,
    allow_onnx_runtime: true,
  };
  const repeat = (fields, devices = ['rpi4']) =>
    parts.shell.repeatCommand({ devices }, { ...run, ...fields }, 'unix:/s');
  assert.equal(
    repeat({}),
    "hone bench 'my net.hone' --seconds 10 --shape x=1,3 --threads 2 --fallback onnxruntime --device rpi4 --tracker unix:/s",
  );
  const plain = { shapes: [], threads: 0, allow_onnx_runtime: false };
  assert.equal(
    repeat({ ...plain, profile: true, packages: [packageOf('-n.hone')] }),
    'hone profile ./-n.hone --seconds 10 --device rpi4 --tracker unix:/s',
  );
  assert.equal(
    repeat({ ...plain, packages: [packageOf('old.hone'), packageOf('new.hone')] }),
    'hone gate new.hone --baseline old.hone --seconds 10 --device rpi4 --tracker unix:/s',
  );
  assert.equal(repeat({ ...plain, seconds: 0 }), null, 'no command runs once on random inputs');
  assert.equal(
    repeat({ ...plain, seconds: 0, inputs: packageOf('in.npz'), packages: [packageOf('n.hone')] }, []),
    'hone run n.hone --input in.npz --device a/cpu --tracker unix:/s --output outputs.npz',
  );
});

test('a word is quoted where a shell would read it otherwise', () => {
  assert.equal(parts.shell.quoted("it's $HOME"), "'it'\\''s $HOME'");
  assert.equal(parts.shell.quoted('cpu -mcpu=x'), "'cpu -mcpu=x'");
  assert.equal(parts.shell.quoted(''), "''");
});

test('targets and devices are shortened to what tells them apart', () => {
  const one = 'cpu -mcpu=znver4 -mattr=+fma,+avx2 -threads=2';
  assert.deepEqual([...parts.shortTargets([one, one])], [[one, 'cpu -mcpu=znver4']]);
  const other = 'cpu -mcpu=znver4 -mattr=+fma -threads=4';
  assert.deepEqual(
    [...parts.shortTargets([one, other]).values()],
    ['cpu -mcpu=znver4 +avx2 -threads=2', 'cpu -mcpu=znver4 -threads=4'],
  );
  assert.deepEqual([...parts.shortTargets(['', 'opaque']).values()], ['', 'opaque']);
  const board = 'aarch64 Raspberry_Pi_4 cores=4 neon';
  assert.equal(parts.shortDevices([board, 'x86_64 AMD_Ryzen avx2']).get(board), 'aarch64 Raspberry Pi 4');
  assert.equal(parts.shortDevices(['x86_64 AMD_Ryzen avx2']).get('x86_64 AMD_Ryzen avx2'), 'x86_64 AMD Ryzen');
});
