// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime as a peer: the version in package.json, its CPU provider with all graph optimizations, sequential
// execution. It runs under its best conditions. Freed memory stays with the process, because a page fault costs
// microseconds on a virtual machine and JavaScript makes a new array for every output. The caller's clock includes the
// copies of the outputs, so the runtime's own profile counts if it is shorter.
//
// A program that requires this file is restarted once with memory settings, because the C library reads them only at
// its start.
'use strict';

const {spawnSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const {median} = require('./median.js');

const MEMORY_IS_KEPT = {
  MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '4294967296', MALLOC_TRIM_THRESHOLD_: '8589934592',
  MALLOC_TOP_PAD_: '268435456',
};

// Restarts this program with the memory settings, and then removes them from the environment of its child processes.
function keepMemory() {
  const kept = Object.entries(MEMORY_IS_KEPT).every(([name, value]) => process.env[name] === value);
  if (!kept) {
    const env = {...process.env, ...MEMORY_IS_KEPT};
    const {status, error} = spawnSync(process.execPath, process.argv.slice(1), {env, stdio: 'inherit'});
    if (error) throw error;
    process.exit(status ?? 1);
  }
  for (const name of Object.keys(MEMORY_IS_KEPT)) delete process.env[name];
}

function loadWantedVersion() {
  const wanted = require('./package.json').dependencies['onnxruntime-node'];
  const {version} = require('onnxruntime-node/package.json');
  if (version !== wanted) {
    console.error(`ONNX Runtime ${version} is installed, ${wanted} is the peer: npm ci in tests/bench/peers`);
    process.exit(1);
  }
  return require('onnxruntime-node');
}

keepMemory();
const ort = loadWantedVersion();

// Converts {name: {type, dims, data}}, as readNpz returns it, to the inputs of a session.
function toFeeds(arrays) {
  return Object.fromEntries(
    Object.entries(arrays).map(([name, array]) => [name, new ort.Tensor(array.type, array.data, array.dims)]));
}

// Returns a promise of a session. more: further options of the session.
function openSession(model, threads, more = {}) {
  return ort.InferenceSession.create(model, {
    executionProviders: ['cpu'],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
    ...more,
  });
}

// Returns the time of each run in milliseconds, for as many runs as the time permits.
async function timeRuns(session, feeds, seconds) {
  const times = [];
  const end = process.hrtime.bigint() + BigInt(Math.round(seconds * 1e9));
  await session.run(feeds);  // warm
  do {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    times.push(Number(process.hrtime.bigint() - start) / 1e6);
  } while (process.hrtime.bigint() < end || times.length < 5);
  return times;
}

// A session that writes a profile of all its runs. The profile does not count the copies of the outputs, which a caller's
// clock includes.
class ProfiledSession {
  // A promise of one.
  static async open(model, threads) {
    const profiled = new ProfiledSession();
    profiled.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hone-ort-'));
    profiled.session = await openSession(model, threads,
      {enableProfiling: true, profileFilePrefix: path.join(profiled.folder, 'profile')});
    return profiled;
  }

  // Ends the session. Returns a promise of the time of each run in milliseconds, in order.
  async close() {
    this.session.endProfiling();
    await this.session.release();
    const events = JSON.parse(fs.readFileSync(path.join(this.folder, fs.readdirSync(this.folder)[0]), 'utf8'));
    fs.rmSync(this.folder, {recursive: true});
    return events.filter(({name}) => name === 'model_run').map(({dur}) => dur / 1e3);
  }
}

// A model with its input, ready to run.
class OnnxRuntime {
  // A promise of one. arrays: as readNpz gives them.
  static async open(model, arrays, threads) {
    const runtime = new OnnxRuntime();
    Object.assign(runtime, {model, threads, feeds: toFeeds(arrays), session: await openSession(model, threads)});
    return runtime;
  }

  // {name: tensor}
  run() {
    return this.session.run(this.feeds);
  }

  // The median of one run in milliseconds, by the clock that says less.
  async time(seconds) {
    const outside = median(await timeRuns(this.session, this.feeds, seconds / 2));
    return Math.min(outside, await this.#timeByProfile(seconds / 2));
  }

  async #timeByProfile(seconds) {
    const profiled = await ProfiledSession.open(this.model, this.threads);
    const runs = (await timeRuns(profiled.session, this.feeds, seconds)).length;
    return median((await profiled.close()).slice(-runs));
  }

  release() {
    return this.session.release();
  }
}

module.exports = {OnnxRuntime, ProfiledSession, openSession, toFeeds};
