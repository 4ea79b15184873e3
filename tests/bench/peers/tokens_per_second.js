// SPDX-License-Identifier: Apache-2.0
// Generates tokens with a language model of tests/networks/open_language.py in ONNX Runtime. The keys and values stay in
// place: one buffer of full capacity for each is both input and output, so no kernel copies them. Times are those of ONNX
// Runtime's own profile, because its JavaScript interface copies each output into a new array after the run.
// Prints one JSON document:
//   {model, threads, machine, prompt, capacity, prompt_ms, token_ms, tokens_per_second, weight_gbytes_per_second, in_place,
//    tokens}
// token_ms is the median time of a call with one token. weight_gbytes_per_second counts the bytes of weights that every
// token reads (bytes_per_token of sizes.json). in_place tells whether the calls wrote into the given buffers. tokens are
// the greedy ones, for comparison with another runtime.
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');
const {parseArgs} = require('util');
const ort = require('onnxruntime-node');
const {median} = require('./median.js');
const {ProfiledSession} = require('./onnx_runtime.js');

const USAGE = `usage: tokens_per_second.js FOLDER [--threads N] [--prompt N] [--tokens N] [--capacity N] [--copied]
  FOLDER      has model.onnx and sizes.json
  --prompt    tokens of the prompt (default 32): those are 1, 2, 3 ...
  --tokens    how many are generated (default 64)
  --capacity  of the buffers of keys and values, in tokens (default 512)
  --copied    a new buffer for each call's outputs instead`;

function parseOptions() {
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {
      threads: {type: 'string', default: '2'},
      prompt: {type: 'string', default: '32'},
      tokens: {type: 'string', default: '64'},
      capacity: {type: 'string', default: '512'},
      copied: {type: 'boolean', default: false},
    },
  });
  if (positionals.length !== 1) throw new TypeError('FOLDER is missing');
  const options = {...values, folder: positionals[0]};
  for (const name of ['threads', 'prompt', 'tokens', 'capacity']) {
    options[name] = Number(options[name]);
    if (!(options[name] > 0)) throw new TypeError(`--${name} must be a positive number`);
  }
  if (options.prompt + options.tokens > options.capacity) throw new TypeError('--capacity is less than all tokens');
  return options;
}

function int64Row(values) {
  return new ort.Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
}

function indexOfMax(data, start, end) {
  let best = start;
  for (let i = start + 1; i < end; ++i) if (data[i] > data[best]) best = i;
  return best - start;
}

// A model and its cache: name of the past's input -> [name of the present's output, tensor].
class Generator {
  constructor(session, inputs, options) {
    this.session = session;
    this.copied = options.copied;
    this.length = 0;  // tokens in the cache
    this.cache = new Map();
    for (const [name, {shape}] of Object.entries(inputs)) {
      if (!name.startsWith('past_key_values.')) continue;
      const dims = [1, shape[1], options.capacity, shape[3]];
      const tensor = new ort.Tensor('float32', new Float32Array(dims.reduce((a, b) => a * b)), dims);
      this.cache.set(name, [name.replace('past_key_values', 'present'), tensor]);
    }
  }

  // Runs the tokens and returns the most likely next one.
  async next(tokens) {
    this.length += tokens.length;
    const feeds = {input_ids: int64Row(tokens), attention_mask: int64Row(new Array(this.length).fill(1))};
    const fetches = {logits: null};
    for (const [past, [present, tensor]] of this.cache) {
      feeds[past] = tensor;
      fetches[present] = this.copied ? null : tensor;
    }
    const outputs = await this.session.run(feeds, fetches);
    if (this.copied) for (const [past, [present]] of this.cache) this.cache.set(past, [present, outputs[present]]);
    const {data, dims} = outputs.logits;
    return indexOfMax(data, data.length - dims[2], data.length);
  }

  // Whether the run wrote the keys and values of the tokens so far into the buffers that this object made.
  isWritten() {
    const [, tensor] = this.cache.values().next().value;
    const row = tensor.dims[3];
    return tensor.data.subarray((this.length - 1) * row, this.length * row).some((value) => value !== 0);
  }
}

async function main(options) {
  const description = JSON.parse(fs.readFileSync(path.join(options.folder, 'sizes.json'), 'utf8'));
  const model = path.join(options.folder, 'model.onnx');
  const profiled = await ProfiledSession.open(model, options.threads);
  const generator = new Generator(profiled.session, description.inputs, options);
  const tokens = [];
  let given = Array.from({length: options.prompt}, (_, i) => i + 1);
  while (tokens.length <= options.tokens) {
    given = [await generator.next(given)];
    tokens.push(given[0]);
  }
  const [promptMs, ...times] = await profiled.close();
  const tokenMs = median(times);
  return {
    model, threads: options.threads, machine: os.cpus()[0].model.trim(), prompt: options.prompt, capacity: options.capacity,
    prompt_ms: promptMs, token_ms: tokenMs, tokens_per_second: 1e3 / tokenMs,
    weight_gbytes_per_second: description.bytes_per_token / tokenMs / 1e6,
    in_place: !options.copied && generator.isWritten(), tokens,
  };
}

let options;
try {
  options = parseOptions();
} catch (error) {
  console.error(`tokens_per_second.js: ${error.message}\n${USAGE}`);
  process.exit(2);
}
main(options).then((document) => console.log(JSON.stringify(document)), (error) => {
  console.error(`tokens_per_second.js: ${error.message}`);
  process.exit(1);
});
