// SPDX-License-Identifier: Apache-2.0
// How Hone and PyTorch are timed, each in a process of its own, beside ONNX Runtime (onnx_runtime.js) with as many threads.
'use strict';

const {execFileSync} = require('child_process');
const path = require('path');

function medianOf(program, args, seconds, threads) {
  const output = execFileSync(program, [...args, '--threads', String(threads), '--seconds', String(seconds)],
    {encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit']});
  return JSON.parse(output).median_ms;
}

// The median of one run of a package in milliseconds, of as many as there is time for.
function timeHone(hone, model, threads, seconds) {
  return medianOf(hone, ['bench', model, '--json'], seconds, threads);
}

// The same of a network of tests/networks/export.py in PyTorch.
function timeTorch(name, threads, seconds) {
  return medianOf('/usr/bin/python3', [path.join(__dirname, '../../networks/time_torch.py'), name], seconds, threads);
}

module.exports = {timeHone, timeTorch};
