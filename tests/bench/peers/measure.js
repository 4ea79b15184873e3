// SPDX-License-Identifier: Apache-2.0
// Times Hone and PyTorch, each in a process of its own, with as many threads as ONNX Runtime (onnx_runtime.js).
'use strict';

const {execFileSync} = require('child_process');
const path = require('path');

function medianOf(program, args, seconds, threads) {
  const output = execFileSync(program, [...args, '--threads', String(threads), '--seconds', String(seconds)],
    {encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit']});
  return JSON.parse(output).median_ms;
}

// Returns the median time of a run of a package in milliseconds, over as many runs as the time permits.
function timeHone(hone, model, threads, seconds) {
  return medianOf(hone, ['bench', model, '--json'], seconds, threads);
}

// Does the same in PyTorch, for a network of tests/networks/export.py.
function timeTorch(name, threads, seconds) {
  return medianOf('/usr/bin/python3', [path.join(__dirname, '../../networks/time_torch.py'), name], seconds, threads);
}

module.exports = {timeHone, timeTorch};
