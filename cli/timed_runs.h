// SPDX-License-Identifier: Apache-2.0
// The options that `hone bench` and `hone profile` share, and the loop that repeats and times a run.
#ifndef HONE_CLI_TIMED_RUNS_H_
#define HONE_CLI_TIMED_RUNS_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/loaded_package.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct TimedRunOptions {
  std::vector<std::string> shapes;  // "ids=1,37": shapes of inputs with open dimensions; the others are the largest
  std::string package;
  std::string input;   // .npz file with the inputs; "" = random ones
  int threads = 0;     // as for the constructor of ThreadPool (base/thread_pool.h), including 0
  double seconds = 2;  // duration of the measurement
  bool json = false;
  std::string fallback;  // "onnxruntime": its library may be loaded for the package

  void AddTo(CLI::App* command);
};

// Sets the inputs that the options say: the arrays of a file, or random ones of a fixed seed at the given shapes. A
// usage error if both a file and shapes are given, because the arrays have shapes.
absl::Status SetInputs(LoadedPackage& package, const TimedRunOptions& options);

// Warms up for a tenth of `seconds` and at least one run, then measures for `seconds` and at least three runs. Returns
// the seconds of each measured run, or the first error of `run`.
absl::StatusOr<std::vector<double>> TimeRuns(double seconds, const std::function<absl::Status()>& run);

// The smallest of `values` that is not exceeded by at least the fraction `share` (0 to 1) of them; for 0 the minimum.
// `values` must not be empty.
double Quantile(std::span<const double> values, double share);

}  // namespace hone::cli

#endif  // HONE_CLI_TIMED_RUNS_H_
