// SPDX-License-Identifier: Apache-2.0
// Times a model in ONNX Runtime at many sizes of its inputs, in interleaved rounds: each round visits every size once, so
// that a disturbance of the machine touches all sizes. A command of a peer can take its turn at each visit. Prints one
// JSON document:
//   {model, threads, rounds, machine, sizes: [{input, ort_ms, ort_first_ms, peer_ms, ratio}], median_ratio}
// ort_ms and peer_ms are the median over the rounds of each visit's median. ort_first_ms is the first run at that size,
// after runs at others. ratio is ort_ms / peer_ms; above 1, the peer is faster.
'use strict';

const {execFileSync} = require('child_process');
const os = require('os');
const path = require('path');
const {parseArgs} = require('util');
const {median} = require('./median.js');
const {readNpz} = require('./npz.js');
const {ProfiledSession, openSession, toFeeds} = require('./onnx_runtime.js');

const USAGE = `usage: time_at_sizes.js MODEL.onnx INPUT.npz... [--threads N] [--rounds N] [--seconds S] [--peer COMMAND]
  INPUT.npz  one file for each size
  --seconds  how long each visit of a size takes (default 0.5)
  --peer     a command that prints JSON with median_ms. In it, {input} becomes the path of the .npz file, {shapes} its
             shapes ("ids=1,128 mask=1,128"), {name} the file's name without .npz, {threads} and {seconds} those options.
             It runs without a shell and is split at spaces.`;

function parseOptions() {
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {
      threads: {type: 'string', default: '2'},
      rounds: {type: 'string', default: '5'},
      seconds: {type: 'string', default: '0.5'},
      peer: {type: 'string'},
    },
  });
  if (positionals.length < 2) throw new TypeError('MODEL.onnx or INPUT.npz is missing');
  const options = {...values, model: positionals[0], inputs: positionals.slice(1)};
  for (const name of ['threads', 'rounds', 'seconds']) {
    options[name] = Number(options[name]);
    if (!(options[name] > 0)) throw new TypeError(`--${name} must be a positive number`);
  }
  return options;
}

function elapsedMs(start) {
  return Number(process.hrtime.bigint() - start) / 1e6;
}

// Runs for that many seconds, but twice at least. Returns the time of each run in milliseconds.
async function visit(session, feeds, seconds) {
  const times = [];
  const start = process.hrtime.bigint();
  do {
    const runStart = process.hrtime.bigint();
    await session.run(feeds);
    times.push(elapsedMs(runStart));
  } while (elapsedMs(start) < 1e3 * seconds || times.length < 2);
  return times;
}

function runPeer(command, size, options) {
  const values = {...size.names, threads: options.threads, seconds: options.seconds};
  const words = command.split(' ').filter(Boolean).flatMap((word) => {
    // {shapes} as a word of its own is several words.
    if (word === '{shapes}') return size.names.shapes.split(' ');
    return [word.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole)];
  });
  const output = execFileSync(words[0], words.slice(1), {encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit']});
  return JSON.parse(output).median_ms;
}

function openSize(input) {
  const arrays = readNpz(input);
  const shapes = Object.entries(arrays).map(([name, {dims}]) => `${name}=${dims.join(',')}`).join(' ');
  return {
    feeds: toFeeds(arrays), names: {input, shapes, name: path.basename(input, '.npz')},
    clockMs: [], profiledMs: [], peerMs: [],
  };
}

function result(size) {
  const ortMs = Math.min(median(size.clockMs), median(size.profiledMs));
  const row = {input: size.names.name, ort_ms: ortMs, ort_first_ms: size.firstMs};
  if (size.peerMs.length === 0) return row;
  const peerMs = median(size.peerMs);
  return {...row, peer_ms: peerMs, ratio: ortMs / peerMs};
}

async function main(options) {
  const session = await openSession(options.model, options.threads);
  const profiled = await ProfiledSession.open(options.model, options.threads);
  const profiledRuns = [];  // the size of each visit and how often it ran
  const sizes = options.inputs.map(openSize);
  for (let round = 0; round < options.rounds; ++round) {
    for (const size of sizes) {
      const times = await visit(session, size.feeds, options.seconds / 2);
      size.firstMs ??= times[0];
      size.clockMs.push(median(times.slice(1)));
      profiledRuns.push({size, count: (await visit(profiled.session, size.feeds, options.seconds / 2)).length});
      if (options.peer) size.peerMs.push(runPeer(options.peer, size, options));
    }
  }
  const durations = await profiled.close();
  for (const {size, count} of profiledRuns) size.profiledMs.push(median(durations.splice(0, count).slice(1)));
  const rows = sizes.map(result);
  return {
    model: options.model, threads: options.threads, rounds: options.rounds, machine: os.cpus()[0].model.trim(), sizes: rows,
    ...(options.peer ? {median_ratio: median(rows.map(({ratio}) => ratio))} : {}),
  };
}

let options;
try {
  options = parseOptions();
} catch (error) {
  console.error(`time_at_sizes.js: ${error.message}\n${USAGE}`);
  process.exit(2);
}
main(options).then((document) => console.log(JSON.stringify(document, null, 1)), (error) => {
  console.error(`time_at_sizes.js: ${error.message}`);
  process.exit(1);
});
