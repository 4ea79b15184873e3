// SPDX-License-Identifier: Apache-2.0
// hone-time-libraries as a process that times operators in oneDNN and OpenBLAS, one request at a time.
'use strict';

const {spawn} = require('child_process');
const fs = require('fs');
const readline = require('readline');

// The library ways that count as peers, because they begin and end in the model's layout. A library's fastest way
// counts.
const WAYS = {onednn_plain: 'onednn', onednn_reordered: 'onednn', openblas: 'openblas'};

class Libraries {
  constructor(program, threads) {
    if (!fs.existsSync(program)) {
      throw new Error(`${program} is not there: apt-get install libdnnl-dev libopenblas-pthread-dev, then ` +
        'cmake --preset release && cmake --build --preset release --target hone-time-libraries');
    }
    const env = {...process.env, OMP_NUM_THREADS: String(threads), OPENBLAS_NUM_THREADS: String(threads)};
    this.process = spawn(program, [], {stdio: ['pipe', 'pipe', 'inherit'], env});
    this.answers = readline.createInterface({input: this.process.stdout})[Symbol.asyncIterator]();
  }

  // {way: ms} of a model of one operator on that input. output: see time_libraries.cc.
  async time(model, input, seconds, output) {
    this.process.stdin.write(JSON.stringify({model, input, seconds, output}) + '\n');
    const {value, done} = await this.answers.next();
    if (done) throw new Error('hone-time-libraries has ended');
    const answer = JSON.parse(value);
    if (answer.error) throw new Error(answer.error);
    return answer.ms;
  }

  end() {
    this.process.stdin.end();
  }
}

module.exports = {Libraries, WAYS};
