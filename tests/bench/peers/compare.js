// Times a compiled package and ONNX Runtime in turns, in one run, and prints one JSON document:
//   {model, hone_ms, ort_ms, ratio, threads, rounds, machine, hone_rounds, ort_rounds}
// ratio is ort_ms / hone_ms: above 1, Hone is the faster. Each figure is the median over the rounds of a round's median.
'use strict';

const os = require('os');
const {parseArgs} = require('util');
const {median, openModel, timeHone, timeOrt, toFeeds} = require('./measure.js');
const {readNpz, writeNpz} = require('./npz.js');

const USAGE = `usage: compare.js MODEL.onnx --input IN.npz [--package MODEL.hone --hone PATH] [--threads N] [--rounds N]
                  [--seconds S] [--dump OUT.npz]
  --package  the compiled model to time; without it only ONNX Runtime runs
  --hone     the hone command (default build/release/bin/hone)
  --seconds  how long each of the two runs in a round (default 2)
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
  const session = await openModel(options.model, options.threads);
  const feeds = toFeeds(readNpz(options.input));
  if (options.dump) writeNpz(options.dump, await session.run(feeds));
  const honeRounds = [];
  const ortRounds = [];
  for (let round = 0; round < options.rounds; ++round) {
    if (options.package) honeRounds.push(timeHone(options.hone, options.package, options.threads, options.seconds));
    ortRounds.push(await timeOrt(session, feeds, options.seconds));
  }
  const result = {model: options.model, ort_ms: median(ortRounds)};
  if (options.package) {
    result.hone_ms = median(honeRounds);
    result.ratio = result.ort_ms / result.hone_ms;
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
