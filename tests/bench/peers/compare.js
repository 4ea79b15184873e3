// SPDX-License-Identifier: Apache-2.0
// Times a compiled package, ONNX Runtime and optionally PyTorch in interleaved rounds of one run. Prints one JSON
// document:
//   {model, hone_ms, ort_ms, ratio, torch_ms, torch_ratio, threads, rounds, machine, hone_rounds, ort_rounds,
//    torch_rounds}
// ratio is ort_ms / hone_ms, torch_ratio is torch_ms / hone_ms; above 1, Hone is faster. Each figure is the median over
// the rounds of each round's median.
'use strict';

const os = require('os');
const {parseArgs} = require('util');
const {timeHone, timeTorch} = require('./measure.js');
const {median} = require('./median.js');
const {readNpz, writeNpz} = require('./npz.js');
const {OnnxRuntime} = require('./onnx_runtime.js');

const USAGE = `usage: compare.js MODEL.onnx --input IN.npz [--package MODEL.hone --hone PATH] [--threads N] [--rounds N]
                  [--seconds S] [--torch NAME] [--dump OUT.npz]
  --package  the compiled model to time; without it only ONNX Runtime runs
  --hone     the hone command (default build/release/bin/hone)
  --seconds  how long each of the two runs in a round (default 2)
  --torch    the network of tests/networks/export.py that the model is, to time in PyTorch, too (Debian's python3-torch)
  --dump     writes ONNX Runtime's outputs`;

function parseOptions() {
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {
      input: {type: 'string'},
      package: {type: 'string'},
      hone: {type: 'string', default: 'build/release/bin/hone'},
      threads: {type: 'string', default: '2'},
      rounds: {type: 'string', default: '5'},
      seconds: {type: 'string', default: '2'},
      torch: {type: 'string'},
      dump: {type: 'string'},
    },
  });
  if (positionals.length !== 1 || !values.input) throw new TypeError('MODEL.onnx or --input is missing');
  const options = {...values, model: positionals[0]};
  for (const name of ['threads', 'rounds', 'seconds']) {
    options[name] = Number(options[name]);
    if (!(options[name] > 0)) throw new TypeError(`--${name} must be a positive number`);
  }
  return options;
}

async function main(options) {
  const runtime = await OnnxRuntime.open(options.model, readNpz(options.input), options.threads);
  if (options.dump) writeNpz(options.dump, await runtime.run());
  const honeRounds = [];
  const ortRounds = [];
  const torchRounds = [];
  for (let round = 0; round < options.rounds; ++round) {
    if (options.package) honeRounds.push(timeHone(options.hone, options.package, options.threads, options.seconds));
    ortRounds.push(await runtime.time(options.seconds));
    if (options.torch) torchRounds.push(timeTorch(options.torch, options.threads, options.seconds));
  }
  const result = {model: options.model, ort_ms: median(ortRounds)};
  if (options.package) {
    result.hone_ms = median(honeRounds);
    result.ratio = result.ort_ms / result.hone_ms;
  }
  if (options.torch) {
    result.torch_ms = median(torchRounds);
    if (options.package) result.torch_ratio = result.torch_ms / result.hone_ms;
    result.torch_rounds = torchRounds;
  }
  return {...result, threads: options.threads, rounds: options.rounds, machine: os.cpus()[0].model.trim(),
    hone_rounds: honeRounds, ort_rounds: ortRounds};
}

let options;
try {
  options = parseOptions();
} catch (error) {
  console.error(`compare.js: ${error.message}\n${USAGE}`);
  process.exit(2);
}
main(options).then((result) => console.log(JSON.stringify(result)), (error) => {
  console.error(`compare.js: ${error.message}`);
  process.exit(1);
});
