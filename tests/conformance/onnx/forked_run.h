// SPDX-License-Identifier: Apache-2.0
// Runs pieces of work in child processes, several at a time: a crash or a hang of one is its result, not ours.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_FORKED_RUN_H_
#define HONE_TESTS_CONFORMANCE_ONNX_FORKED_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::conformance {

struct ForkedRunOptions {
  int jobs = 2;               // children at a time
  int timeout_seconds = 120;  // of one piece of work
};

// Calls work(i) in a child process for every i in [0, count), and then, here and in any order, done(i, status). The
// status's code and message cross the process boundary (the message cut at 4 KiB); a child that dies is Aborted and
// one that takes too long DeadlineExceeded, and another child goes on with the rest. A child does one piece after the
// other, and so keeps what `work` opens. The caller must have no other threads.
void ForkedRun(size_t count, const ForkedRunOptions& options, const std::function<absl::Status(size_t)>& work,
               const std::function<void(size_t, const absl::Status&)>& done);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_FORKED_RUN_H_
