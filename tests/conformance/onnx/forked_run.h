// SPDX-License-Identifier: Apache-2.0
// Runs pieces of work in child processes, several at a time. A crash or hang of a piece becomes its result.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_FORKED_RUN_H_
#define HONE_TESTS_CONFORMANCE_ONNX_FORKED_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::conformance {

struct ForkedRunOptions {
  int jobs = 2;               // children at a time
  int timeout_seconds = 120;  // for one piece of work
};

// Calls work(i) in a child process for every i in [0, count). Then calls done(i, status) in this process, in any order.
// The status's code and message cross the process boundary; the message is cut at 4 KiB. A child that dies yields
// Aborted, one that takes too long DeadlineExceeded, and a new child continues. A child does many pieces in sequence,
// so things that `work` opens stay open. The caller must have no other threads.
void ForkedRun(size_t count, const ForkedRunOptions& options, const std::function<absl::Status(size_t)>& work,
               const std::function<void(size_t, const absl::Status&)>& done);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_FORKED_RUN_H_
