// Times single operators, compiled untuned, beside ONNX Runtime: one line each, the worst first, and of the worst what
// bounds them and how they were scheduled.
//   hone-make-operators OPS; node compare_operators.js OPS [--hone PATH] [--only TEXT] [--explain N] [--json]
//   hone-make-operators OPS --random 300 --seed 7; node compare_operators.js OPS
// ratio is ort_ms / hone_ms: above 1, Hone is the faster. Both take turns, round after round; a figure is the median
// over the rounds of a round's median. difference is the largest one between both outputs, relative to the largest value.
'use strict';

const {execFileSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const {parseArgs} = require('util');
const {median, openModel, timeHone, timeOrt, toFeeds} = require('../peers/measure.js');
const {readNpz, writeNpz} = require('../peers/npz.js');

const USAGE = `usage: compare_operators.js FOLDER [--hone PATH] [--only TEXT] [--threads N] [--rounds N] [--seconds S]
                            [--explain N] [--json]
  FOLDER     where hone-make-operators wrote; packages go there, too
  --hone     the hone command (default build/release/bin/hone)
  --only     operators whose name has this text in it (a regular expression)
  --seconds  how long each of the two runs in a round (default 0.2)
  --explain  of how many of the worst to show where the time goes, with their schedules (default 0)
  --json     print one JSON document: {threads, rounds, machine, geometric_mean, operators: [{name, hone_ms, ort_ms,
             ratio, ...}], failed: [{name, error}]}; explained ones with kernels, as hone profile has them`;

function hone(options, args) {
  // No records: what is timed is the default.
  const env = {...process.env, XDG_DATA_HOME: path.join(options.folder, 'nothing')};
  return execFileSync(options.hone, args, {stdio: ['ignore', 'pipe', 'pipe'], env, encoding: 'utf8'});
}

function randomInput({type, shape}) {
  let state = 1;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return type === 'uint8' ? state >>> 24 : state / 2 ** 31 - 1;
  };
  const array = type === 'uint8' ? Uint8Array : Float32Array;
  return {x: {type, dims: shape, data: array.from({length: shape.reduce((a, b) => a * b, 1)}, next)}};
}

function differenceOf(actual, expected) {
  let difference = 0;
  let largest = 0;
  for (const [name, {data}] of Object.entries(expected)) {
    for (let i = 0; i < data.length; ++i) {
      const apart = Math.abs(actual[name].data[i] - data[i]);
      difference = apart > difference || Number.isNaN(apart) ? apart : difference;
      largest = Math.max(largest, Math.abs(data[i]));
    }
  }
  return difference / largest;
}

async function compare(operator, options) {
  const at = (ending) => path.join(options.folder, operator.name + ending);
  hone(options, ['compile', at('.onnx'), '-o', at('.hone'), '--threads', String(options.threads)]);
  const arrays = randomInput(operator);
  writeNpz(at('.input.npz'), arrays);
  hone(options, ['run', at('.hone'), '--input', at('.input.npz'), '--output', at('.output.npz')]);
  const session = await openModel(at('.onnx'), options.threads);
  const feeds = toFeeds(arrays);
  const difference = differenceOf(readNpz(at('.output.npz')), await session.run(feeds));
  const honeRounds = [];
  const ortRounds = [];
  for (let round = 0; round < options.rounds; ++round) {
    honeRounds.push(timeHone(options.hone, at('.hone'), options.threads, options.seconds));
    ortRounds.push(await timeOrt(session, feeds, options.seconds));
  }
  await session.release();
  const honeMs = median(honeRounds);
  const ortMs = median(ortRounds);
  return {name: operator.name, hone_ms: honeMs, ort_ms: ortMs, ratio: ortMs / honeMs,
    gflops: operator.flops / honeMs / 1e6, difference, hone_rounds: honeRounds, ort_rounds: ortRounds};
}

// Where the time of the packages goes, and by which schedules.
function explain(operator, options) {
  const profile = JSON.parse(hone(options, ['profile', path.join(options.folder, operator.name + '.hone'), '--threads',
    String(options.threads), '--seconds', String(options.seconds), '--json']));
  return {...operator, peak_gflops: profile.peak_gflops, memory_gbytes_per_second: profile.memory_gbytes_per_second,
    kernels: profile.kernels};
}

function printExplained(operator) {
  console.log(`\n${operator.name}: ${operator.ratio.toFixed(2)} of ONNX Runtime's speed; the device: ` +
    `${operator.peak_gflops.toFixed(0)} GFLOP/s, ${operator.memory_gbytes_per_second.toFixed(0)} GB/s from memory`);
  for (const kernel of operator.kernels) {
    console.log(`  ${kernel.operator} ${kernel.time_ms.toFixed(4)} ms (${(100 * kernel.share).toFixed(0)}%), ` +
      `${kernel.gflops.toFixed(1)} GFLOP/s, ${(100 * kernel.roofline_share).toFixed(0)}% of its roofline`);
    console.log(kernel.schedule.trimEnd().replace(/^/gm, '    '));
  }
}

function geometricMean(operators) {
  return Math.exp(operators.reduce((sum, o) => sum + Math.log(o.ratio), 0) / operators.length);
}

function printTable(operators) {
  console.log(`${'operator'.padEnd(44)} ${'hone ms'.padStart(10)} ${'ort ms'.padStart(10)} ${'ratio'.padStart(7)} ` +
    `${'GFLOP/s'.padStart(8)} ${'difference'.padStart(10)}`);
  for (const o of operators) {
    console.log(`${o.name.padEnd(44)} ${o.hone_ms.toFixed(4).padStart(10)} ${o.ort_ms.toFixed(4).padStart(10)} ` +
      `${o.ratio.toFixed(2).padStart(7)} ${o.gflops.toFixed(1).padStart(8)} ${o.difference.toExponential(1).padStart(10)}`);
  }
}

function parseOptions() {
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {
      hone: {type: 'string', default: 'build/release/bin/hone'},
      only: {type: 'string', default: ''},
      threads: {type: 'string', default: '2'},
      rounds: {type: 'string', default: '3'},
      seconds: {type: 'string', default: '0.2'},
      explain: {type: 'string', default: '0'},
      json: {type: 'boolean', default: false},
    },
  });
  if (positionals.length !== 1) throw new TypeError('FOLDER is missing');
  const options = {...values, folder: positionals[0]};
  for (const name of ['threads', 'rounds', 'seconds']) {
    options[name] = Number(options[name]);
    if (!(options[name] > 0)) throw new TypeError(`--${name} must be a positive number`);
  }
  options.explain = Number(options.explain);
  if (!(options.explain >= 0)) throw new TypeError('--explain must be a number');
  options.only = new RegExp(options.only);
  return options;
}

async function main(options) {
  const listed = JSON.parse(fs.readFileSync(path.join(options.folder, 'operators.json'), 'utf8'));
  let operators = [];
  const failed = [];
  for (const operator of listed) {
    if (!options.only.test(operator.name)) continue;
    try {
      operators.push(await compare(operator, options));
    } catch (error) {  // one that either refuses must not hide the others
      failed.push({name: operator.name, error: (error.stderr || error.message).trim()});
    }
  }
  operators.sort((a, b) => a.ratio - b.ratio);
  operators = operators.map((o, i) => i < options.explain ? explain(o, options) : o);
  const mean = geometricMean(operators);
  if (options.json) {
    console.log(JSON.stringify({threads: options.threads, rounds: options.rounds, machine: os.cpus()[0].model.trim(),
      geometric_mean: mean, operators, failed}));
    return;
  }
  printTable(operators);
  console.log(`geometric mean of ${operators.length}: ${mean.toFixed(2)}`);
  for (const operator of operators.filter((o) => o.kernels)) printExplained(operator);
  for (const {name, error} of failed) console.log(`\n${name} failed: ${error}`);
}

let options;
try {
  options = parseOptions();
} catch (error) {
  console.error(`compare_operators.js: ${error.message}\n${USAGE}`);
  process.exit(2);
}
main(options).catch((error) => {
  console.error(`compare_operators.js: ${error.message}`);
  process.exit(1);
});
