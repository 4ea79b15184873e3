// SPDX-License-Identifier: Apache-2.0
// Times one operator, compiled untuned or tuned, beside its peers in interleaved rounds.
'use strict';

const {execFileSync} = require('child_process');
const fs = require('fs');
const path = require('path');
const {timeHone} = require('../peers/measure.js');
const {median} = require('../peers/median.js');
const {readNpz, writeNpz} = require('../peers/npz.js');
const {OnnxRuntime} = require('../peers/onnx_runtime.js');
const {WAYS} = require('./libraries.js');

function hone(options, args) {
  // No records but those that are named: what is timed is the default.
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
    if (actual[name].data.length !== data.length) throw new Error(`${name} has another shape than in ONNX Runtime`);
    for (let i = 0; i < data.length; ++i) {
      const apart = Math.abs(actual[name].data[i] - data[i]);
      difference = apart > difference || Number.isNaN(apart) ? apart : difference;
      largest = Math.max(largest, Math.abs(data[i]));
    }
  }
  return difference / largest;
}

// Returns the shortest possible time in seconds for these operations on these bytes, as in base/roofline.h.
function leastSeconds(profile, flops, bytes) {
  const level = profile.levels.find((l) => l.bytes === null || bytes <= l.bytes);
  return Math.max(flops / profile.peak_gflops, bytes / level.gbytes_per_second) / 1e9;
}

// Compares the operator with the roofline measured beside it, and returns the times of its package's kernels.
function profile(operator, packageFile, bytes, honeMs, options) {
  const measured = JSON.parse(hone(options, ['profile', packageFile, '--threads', String(options.threads), '--seconds',
    String(options.seconds), '--json']));
  return {
    roof_share: 1e3 * leastSeconds(measured, operator.flops, bytes) / honeMs,
    peak_share: operator.flops / honeMs / 1e6 / measured.peak_gflops,
    peak_gflops: measured.peak_gflops,
    memory_gbytes_per_second: measured.memory_gbytes_per_second,
    kernels: measured.kernels,
  };
}

// Returns {name: median over the rounds} and every round. A library's fastest way is the peer.
function summarize(rounds) {
  const result = {};
  const peers = {};
  for (const [name, values] of Object.entries(rounds)) {
    result[`${name}_ms`] = median(values);
    const peer = name === 'ort' ? 'ort' : WAYS[name];
    if (peer) peers[peer] = Math.min(peers[peer] ?? Infinity, result[`${name}_ms`]);
  }
  for (const [peer, ms] of Object.entries(peers)) result[`${peer}_ms`] = ms;
  const best = Object.keys(peers).reduce((a, b) => (peers[a] <= peers[b] ? a : b));
  return {...result, best_peer: best, ratio: peers[best] / result.hone_ms,
    ...Object.fromEntries(Object.entries(rounds).map(([name, values]) => [`${name}_rounds`, values]))};
}

// Checks the libraries' outputs, because the time of a wrong computation is worthless.
function libraryDifferences(output, expected) {
  const differences = {};
  for (const way of Object.keys(WAYS)) {
    const file = `${output}.${way}.npz`;
    if (!fs.existsSync(file)) continue;
    differences[way] = differenceOf(readNpz(file), expected);
    fs.rmSync(file);
    if (!(differences[way] < 1e-3)) throw new Error(`${way} differs from ONNX Runtime by ${differences[way]}`);
  }
  return differences;
}

// Compiles the operator, with its records if it was tuned, and times it. Returns the values that compare_operators.js
// prints. libraries: null leaves the libraries out.
async function timeOperator(operator, records, libraries, options) {
  const at = (ending) => path.join(options.folder, operator.name + ending);
  hone(options, ['compile', at('.onnx'), '-o', at('.hone'), '--threads', String(options.threads),
    ...(records ? ['--records', records] : [])]);
  const arrays = randomInput(operator);
  writeNpz(at('.input.npz'), arrays);
  hone(options, ['run', at('.hone'), '--input', at('.input.npz'), '--output', at('.output.npz')]);
  const runtime = await OnnxRuntime.open(at('.onnx'), arrays, options.threads);
  const expected = await runtime.run();
  const difference = differenceOf(readNpz(at('.output.npz')), expected);
  const with8Bits = operator.type === 'uint8';
  const timeLibraries = async (seconds, output) =>
    libraries && !with8Bits ? libraries.time(at('.onnx'), at('.input.npz'), seconds, output) : {};
  await timeLibraries(1e-3, at(''));
  const library_differences = libraryDifferences(at(''), expected);
  const rounds = {hone: [], ort: []};
  for (let round = 0; round < options.rounds; ++round) {
    rounds.hone.push(timeHone(options.hone, at('.hone'), options.threads, options.seconds));
    rounds.ort.push(await runtime.time(options.seconds));
    for (const [way, ms] of Object.entries(await timeLibraries(options.seconds))) (rounds[way] ??= []).push(ms);
  }
  await runtime.release();
  const summary = summarize(rounds);
  const bytes = [...Object.values(arrays), ...Object.values(expected)].reduce(
    (sum, {data}) => sum + data.byteLength, operator.constant_bytes);
  return {...summary, gflops: operator.flops / summary.hone_ms / 1e6, bytes, difference, library_differences,
    ...profile(operator, at('.hone'), bytes, summary.hone_ms, options)};
}

// Tunes the operator alone, without earlier records. Returns the file of its records.
function tuneOperator(operator, seconds, options) {
  const records = path.join(options.folder, operator.name + '.db');
  for (const ending of ['', '-wal', '-shm']) fs.rmSync(records + ending, {force: true});
  hone(options, ['tune', path.join(options.folder, operator.name + '.onnx'), '--time', `${seconds}s`, '--threads',
    String(options.threads), '--records', records]);
  return records;
}

module.exports = {timeOperator, tuneOperator};
