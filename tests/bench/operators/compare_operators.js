// SPDX-License-Identifier: Apache-2.0
// Times single operators, compiled untuned and then tuned, beside ONNX Runtime, oneDNN and OpenBLAS. Prints one line
// per operator, the slowest relative to its peers first. For the worst ones it also prints their bounds and schedules.
//   hone-make-operators OPS; node compare_operators.js OPS [--libraries] [--only TEXT] [--explain N] [--json]
//   hone-make-operators OPS --random 300 --seed 7; node compare_operators.js OPS --tuned 30 --worst 50
//   hone-make-operators OPS --list odd; node compare_operators.js OPS --tuned 30
// ratio: time of the fastest peer / hone_ms; above 1, Hone is faster. All programs run in interleaved rounds, and a
// figure is the median over the rounds of each round's median. difference: largest difference to ONNX Runtime's output,
// relative to the largest value. roof: share of the machine's limit, measured beside each operator. The limit is its
// multiply-add rate, or reading input, constants and output once from the memory level that holds them. Winograd can
// exceed it, because it needs fewer products.
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');
const {parseArgs} = require('util');
const {Libraries} = require('./libraries.js');
const {timeOperator, tuneOperator} = require('./time_operator.js');

const USAGE = `usage: compare_operators.js FOLDER [--hone PATH] [--libraries] [--tuned SECONDS [--worst N]] [--only TEXT]
                            [--threads N] [--rounds N] [--seconds S] [--explain N] [--json]
  FOLDER       where hone-make-operators wrote; packages go there, too
  --hone       the hone command (default build/release/bin/hone)
  --libraries  oneDNN and OpenBLAS are peers, too: hone-time-libraries, beside the hone command, times them. Of oneDNN
               the faster of two ways is the peer: made for the model's layout, or for its own with reorders there and
               back; onednn_own_layout_ms is without the reorders
  --tuned      afterwards tunes operators for so many seconds each, and times them once more, as tuned
  --worst      only so many, those of the lowest ratio
  --only       operators whose name has this text in it (a regular expression)
  --seconds    how long each of them runs in a round (default 0.2)
  --explain    of how many of the worst to show where the time goes, with their schedules (default 0)
  --json       print one JSON document: {threads, rounds, machine, untuned, tuned: {count, geometric_mean, least,
               least_quotient}, operators: [{name, hone_ms, ort_ms, onednn_ms, openblas_ms, best_peer, ratio, gflops, peak_share,
               roof_share, ..., tuned: the same}], failed: [{name, error}]}; odd shapes with the name of the round one
               and quotient, their GFLOP/s by its; explained ones with kernels, as hone profile has them`;

// An odd shape is compared with the same operator of a round shape, timed in the same run.
function addQuotients(operators) {
  const byName = new Map(operators.map((o) => [o.name, o]));
  for (const odd of operators) {
    const round = byName.get(odd.round);
    if (!round) continue;
    odd.quotient = odd.gflops / round.gflops;
    if (odd.tuned && round.tuned) odd.tuned.quotient = odd.tuned.gflops / round.tuned.gflops;
  }
}

function summaryOf(results) {
  if (results.length === 0) return null;
  const ratios = results.map((o) => o.ratio);
  const quotients = results.flatMap((o) => o.quotient ?? []);
  return {count: ratios.length, least: Math.min(...ratios),
    geometric_mean: Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length),
    ...(quotients.length > 0 ? {least_quotient: Math.min(...quotients)} : {})};
}

const COLUMNS = [
  ['hone ms', (o) => o.hone_ms.toFixed(4)],
  ['ort ms', (o) => o.ort_ms.toFixed(4)],
  ['onednn ms', (o) => o.onednn_ms?.toFixed(4)],
  ['own layout', (o) => o.onednn_own_layout_ms?.toFixed(4)],
  ['openblas', (o) => o.openblas_ms?.toFixed(4)],
  ['ratio', (o) => o.ratio.toFixed(2)],
  ['GFLOP/s', (o) => o.gflops.toFixed(1)],
  ['peak', (o) => `${(100 * o.peak_share).toFixed(0)}%`],
  ['roof', (o) => `${(100 * o.roof_share).toFixed(0)}%`],
  ['to round', (o) => o.quotient?.toFixed(2)],
  ['difference', (o) => o.difference.toExponential(1)],
];

// Leaves out columns without a value for any operator.
function printTable(title, operators) {
  const columns = COLUMNS.filter(([, text]) => operators.some((o) => text(o) !== undefined));
  const width = Math.max(title.length, ...operators.map((o) => o.name.length));
  console.log(title.padEnd(width) + columns.map(([name]) => name.padStart(11)).join(''));
  for (const o of operators) {
    console.log(o.name.padEnd(width) + columns.map(([, text]) => (text(o) ?? '').padStart(11)).join(''));
  }
  const {count, geometric_mean, least, least_quotient} = summaryOf(operators);
  console.log(`geometric mean of the ratio, of ${count}: ${geometric_mean.toFixed(2)}; the least: ${least.toFixed(2)}` +
    (least_quotient ? `; of odd to round shapes, the least: ${least_quotient.toFixed(2)}` : '') + '\n');
}

function printExplained(operator) {
  console.log(`\n${operator.name}: ${operator.ratio.toFixed(2)} of the speed of ${operator.best_peer}; the device: ` +
    `${operator.peak_gflops.toFixed(0)} GFLOP/s, ${operator.memory_gbytes_per_second.toFixed(0)} GB/s from memory`);
  for (const kernel of operator.kernels) {
    console.log(`  ${kernel.operator} ${kernel.time_ms.toFixed(4)} ms (${(100 * kernel.share).toFixed(0)}%), ` +
      `${kernel.gflops.toFixed(1)} GFLOP/s, ${(100 * kernel.roofline_share).toFixed(0)}% of its roofline`);
    console.log(kernel.schedule.trimEnd().replace(/^/gm, '    '));
  }
}

// Times each operator; an error of one must not stop the others.
async function timeAll(operators, failed, time) {
  const timed = [];
  for (const operator of operators) {
    try {
      timed.push(await time(operator));
    } catch (error) {
      failed.push({name: operator.name, error: (error.stderr || error.message).trim()});
    }
  }
  return timed.sort((a, b) => a.ratio - b.ratio);
}

function parseOptions() {
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {
      hone: {type: 'string', default: 'build/release/bin/hone'},
      libraries: {type: 'boolean', default: false},
      tuned: {type: 'string', default: '0'},
      worst: {type: 'string', default: 'Infinity'},
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
  for (const name of ['threads', 'rounds', 'seconds', 'worst']) {
    options[name] = Number(options[name]);
    if (!(options[name] > 0)) throw new TypeError(`--${name} must be a positive number`);
  }
  for (const name of ['explain', 'tuned']) {
    options[name] = Number(options[name]);
    if (!(options[name] >= 0)) throw new TypeError(`--${name} must be a number`);
  }
  options.only = new RegExp(options.only);
  return options;
}

async function main(options) {
  const listed = JSON.parse(fs.readFileSync(path.join(options.folder, 'operators.json'), 'utf8'));
  const program = path.join(path.dirname(options.hone), 'hone-time-libraries');
  const libraries = options.libraries ? new Libraries(program, options.threads) : null;
  const failed = [];
  const operators = await timeAll(listed.filter((o) => options.only.test(o.name)), failed,
    async (o) => ({...o, ...await timeOperator(o, null, libraries, options)}));
  const toTune = options.tuned > 0 ? operators.slice(0, options.worst) : [];
  await timeAll(toTune, failed, async (o) =>
    (o.tuned = await timeOperator(o, tuneOperator(o, options.tuned, options), libraries, options)));
  libraries?.end();
  addQuotients(operators);
  operators.slice(options.explain).forEach((o) => delete o.kernels);
  operators.forEach((o, i) => i >= options.explain && o.tuned && delete o.tuned.kernels);
  const tuned = operators.filter((o) => o.tuned).map((o) => ({name: o.name, ...o.tuned}));
  if (options.json) {
    console.log(JSON.stringify({threads: options.threads, rounds: options.rounds, machine: os.cpus()[0].model.trim(),
      untuned: summaryOf(operators), tuned: summaryOf(tuned), operators, failed}));
    return;
  }
  if (operators.length > 0) printTable('operator, untuned', operators);
  if (tuned.length > 0) printTable(`operator, tuned for ${options.tuned} s`, tuned.sort((a, b) => a.ratio - b.ratio));
  for (const operator of operators.slice(0, options.explain)) printExplained(operator);
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
