// SPDX-License-Identifier: Apache-2.0
// Prints samples of the generated models' outputs, computed by ONNX Runtime, for tests/models/expected_outputs.txt. The
// tests compare with that file because it shares no code with Hone. To write it again:
//   hone-make-models M; for each M/NAME.onnx: hone-npz random M/NAME.onnx M/NAME.npz   (seed 1)
//   node expected_outputs.js M/*.onnx > tests/models/expected_outputs.txt
'use strict';

const path = require('path');
const ort = require('onnxruntime-node');
const {readNpz} = require('./npz.js');

const SAMPLES = 24;

// Sample positions spread over the output, including its first and last element.
function sampledIndices(size) {
  const count = Math.min(SAMPLES, size);
  return Array.from({length: count}, (_, i) => (count === 1 ? 0 : Math.floor((i * (size - 1)) / (count - 1))));
}

async function printModel(file) {
  const name = path.basename(file, '.onnx');
  const session = await ort.InferenceSession.create(file, {graphOptimizationLevel: 'disabled', logSeverityLevel: 3});
  const feeds = {};
  for (const [input, array] of Object.entries(readNpz(file.replace(/\.onnx$/, '.npz')))) {
    feeds[input] = new ort.Tensor(array.type, array.data, array.dims);
  }
  for (const [output, tensor] of Object.entries(await session.run(feeds))) {
    for (const index of sampledIndices(tensor.data.length)) {
      console.log(`${name} ${output} ${tensor.dims.join('x')} ${index} ${tensor.data[index].toPrecision(7)}`);
    }
  }
}

async function main(files) {
  if (files.length === 0) throw new Error('usage: expected_outputs.js MODEL.onnx...');
  console.log('# model output shape index value: of ONNX Runtime 1.20; see tests/bench/peers/expected_outputs.js');
  for (const file of files) await printModel(file);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`expected_outputs.js: ${error.message}`);
  process.exit(1);
});
