// SPDX-License-Identifier: Apache-2.0
// The options that `hone bench`, `hone profile` and `hone diff` share, and how the commands load packages.
#ifndef HONE_CLI_TIMED_RUN_OPTIONS_H_
#define HONE_CLI_TIMED_RUN_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/run/loaded_package.h"

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
  // The same without --seconds and --fallback, for commands that run the package once.
  void AddInputsTo(CLI::App* command);
};

// A usage error if both a file and shapes are given, because the arrays have shapes.
absl::Status CheckInputOptions(const TimedRunOptions& options);

// Sets the inputs that the options say: the arrays of a file, or random ones of a fixed seed at the given shapes. A
// usage error if both a file and shapes are given, because the arrays have shapes.
absl::Status SetInputs(run::LoadedPackage& package, const TimedRunOptions& options);

// Loads the package, and prints to standard error which of its programs were passed over. fallback: the value of
// --fallback; empty: a package must not load ONNX Runtime, unless the environment allows it. Errors as
// run::LoadedPackage::Load.
absl::StatusOr<run::LoadedPackage> LoadPackage(const std::string& path, int threads, const std::string& fallback);

}  // namespace hone::cli

#endif  // HONE_CLI_TIMED_RUN_OPTIONS_H_
