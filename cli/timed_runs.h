// SPDX-License-Identifier: Apache-2.0
// What `hone bench` and `hone profile` share: their options, and a run repeated for a while, each time measured.
#ifndef HONE_CLI_TIMED_RUNS_H_
#define HONE_CLI_TIMED_RUNS_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct TimedRunOptions {
  std::string package;
  int threads = 0;     // 0: as base/thread_pool.h says
  double seconds = 2;  // how long to measure
  bool json = false;

  void AddTo(CLI::App* command);
};

// Warms up (one run at least, and a tenth of `seconds`), then runs for `seconds` and at least three times. Returns the
// seconds of each measured run, or the first failure of `run`.
absl::StatusOr<std::vector<double>> TimedRuns(double seconds, const std::function<absl::Status()>& run);

// The smallest value that at least `share` (0 to 1) of `values` do not exceed; 0 is the minimum. `values` is not empty.
double Quantile(std::span<const double> values, double share);

}  // namespace hone::cli

#endif  // HONE_CLI_TIMED_RUNS_H_
