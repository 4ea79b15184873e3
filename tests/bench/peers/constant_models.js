// SPDX-License-Identifier: Apache-2.0
// Prints the outputs of small models without inputs, computed by ONNX Runtime without graph optimizations: one line per
// output with the model's name, the number of the output, its dimensions and all its elements. To write
// tests/unit/decompose/expected_outputs.txt again:
//   HONE_WRITE_DECOMPOSE_CASES=CASES build/release/bin/decompose_test
//   node constant_models.js CASES/*.onnx > tests/unit/decompose/expected_outputs.txt
'use strict';

const path = require('path');
const ort = require('onnxruntime-node');

async function printModel(file) {
  const name = path.basename(file, '.onnx');
  const session = await ort.InferenceSession.create(file, {graphOptimizationLevel: 'disabled', logSeverityLevel: 4});
  for (const [output, tensor] of Object.entries(await session.run({}))) {
    const numbers = Array.from(tensor.data, (number) => String(Number(Number(number).toPrecision(7))));
    console.log([name, output.replace('output', ''), tensor.dims.join('x') || '-', ...numbers].join(' '));
  }
}

async function main() {
  console.log('# SPDX-License-Identifier: Apache-2.0');
  console.log('# Made by tests/bench/peers/constant_models.js with ONNX Runtime: case, output, dimensions, numbers.');
  let failed = false;
  for (const file of process.argv.slice(2)) {
    try {
      await printModel(file);
    } catch (error) {
      failed = true;
      console.error(`${file}: ${error.message}`);
    }
  }
  if (failed) process.exit(1);
}

main();
