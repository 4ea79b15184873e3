// SPDX-License-Identifier: Apache-2.0
// Runs a model in ONNX Runtime once for each file of inputs, whatever their sizes are, and writes FOLDER/expected/X.npz
// for each FOLDER/inputs/X.npz. tests/networks/dynamic.py writes such folders. Prints the shapes of the outputs.
'use strict';

const fs = require('fs');
const path = require('path');
const {parseArgs} = require('util');
const {readNpz, writeNpz} = require('./npz.js');
const {openSession, toFeeds} = require('./onnx_runtime.js');

const USAGE = `usage: outputs_at_sizes.js FOLDER... [--threads N] [--unoptimized]
  FOLDER         has model.onnx and inputs/*.npz
  --threads      of ONNX Runtime (default 1)
  --unoptimized  without ONNX Runtime's graph optimizations, each of which could have an error of its own`;

function parseOptions() {
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {threads: {type: 'string', default: '1'}, unoptimized: {type: 'boolean', default: false}},
  });
  const threads = Number(values.threads);
  if (positionals.length === 0) throw new TypeError('FOLDER is missing');
  if (!(threads > 0)) throw new TypeError('--threads must be a positive number');
  return {...values, threads, folders: positionals};
}

// The arrays of a run's outputs. Types that .npz files of this project do not have are an error of writeNpz.
function toArrays(outputs) {
  return Object.fromEntries(Object.entries(outputs).map(([name, {type, dims, data}]) => [name, {type, dims, data}]));
}

// The least and the greatest number, and whether all are finite: shows an output that a comparison could not fail on.
function summary({dims, data}) {
  let [least, greatest, finite] = [Infinity, -Infinity, true];
  for (const element of data) {
    const number = Number(element);
    least = Math.min(least, number);
    greatest = Math.max(greatest, number);
    finite &&= Number.isFinite(number);
  }
  const range = data.length ? ` ${least.toPrecision(3)}..${greatest.toPrecision(3)}` : '';
  return `[${dims}]${range}${finite ? '' : ' NOT FINITE'}`;
}

async function runFolder(folder, options) {
  const optimization = options.unoptimized ? {graphOptimizationLevel: 'disabled'} : {};
  const session = await openSession(path.join(folder, 'model.onnx'), options.threads, optimization);
  fs.mkdirSync(path.join(folder, 'expected'), {recursive: true});
  for (const file of fs.readdirSync(path.join(folder, 'inputs')).sort()) {
    const outputs = toArrays(await session.run(toFeeds(readNpz(path.join(folder, 'inputs', file)))));
    writeNpz(path.join(folder, 'expected', file), outputs);
    const shown = Object.entries(outputs).slice(0, 4).map(([name, array]) => `${name} ${summary(array)}`);
    console.log(`${path.basename(folder)} ${path.basename(file, '.npz')}: ${shown.join(', ')}`);
  }
  await session.release();
}

async function main(options) {
  for (const folder of options.folders) await runFolder(folder, options);
}

let options;
try {
  options = parseOptions();
} catch (error) {
  console.error(`outputs_at_sizes.js: ${error.message}\n${USAGE}`);
  process.exit(2);
}
main(options).catch((error) => {
  console.error(`outputs_at_sizes.js: ${error.message}`);
  process.exit(1);
});
