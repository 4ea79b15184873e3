// What the comparisons share: how ONNX Runtime and a compiled package are set up and timed.
//
// Both get the same number of threads; ONNX Runtime runs its CPU provider with all graph optimizations, sequentially.
'use strict';

const {execFileSync} = require('child_process');
const path = require('path');
const ort = require('onnxruntime-node');

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// A promise of a session of ONNX Runtime.
function openModel(path, threads) {
  return ort.InferenceSession.create(path, {
    executionProviders: ['cpu'],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
  });
}

// {name: {type, dims, data}}, as readNpz gives it, in the form that a session takes.
function toFeeds(arrays) {
  return Object.fromEntries(
    Object.entries(arrays).map(([name, array]) => [name, new ort.Tensor(array.type, array.data, array.dims)]));
}

// The median of one run in milliseconds, of as many as there is time for.
async function timeOrt(session, feeds, seconds) {
  const times = [];
  const end = process.hrtime.bigint() + BigInt(Math.round(seconds * 1e9));
  await session.run(feeds);  // warm
  do {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    times.push(Number(process.hrtime.bigint() - start) / 1e6);
  } while (process.hrtime.bigint() < end || times.length < 5);
  return median(times);
}

// The same of a package.
function timeHone(hone, model, threads, seconds) {
  const output = execFileSync(hone, ['bench', model, '--threads', String(threads), '--seconds', String(seconds),
    '--json'], {encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit']});
  return JSON.parse(output).median_ms;
}

// The same of a network of tests/networks/export.py in PyTorch.
function timeTorch(name, threads, seconds) {
  const script = path.join(__dirname, '../../networks/time_torch.py');
  const output = execFileSync('/usr/bin/python3', [script, name, '--threads', String(threads), '--seconds',
    String(seconds)], {encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit']});
  return JSON.parse(output).median_ms;
}

module.exports = {median, openModel, toFeeds, timeOrt, timeHone, timeTorch};
