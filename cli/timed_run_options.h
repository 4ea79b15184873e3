// SPDX-License-Identifier: Apache-2.0
// The options of the commands that time or compare packages, and how commands load packages.
#ifndef HONE_CLI_TIMED_RUN_OPTIONS_H_
#define HONE_CLI_TIMED_RUN_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/model_packages.h"
#include "deploy/run/loaded_package.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct TimedRunOptions {
  std::vector<std::string> shapes;  // "ids=1,37": shapes of inputs with open dimensions; the others are the largest
  std::string package;  // of a model (IsModel): a package is made of it first, for the shapes and the threads
  std::string input;    // .npz file with the inputs; "" = random ones
  int threads = 0;      // as for the constructor of ThreadPool (base/thread_pool.h), including 0
  double seconds = 2;   // duration of the measurement
  bool json = false;
  std::string fallback;  // "onnxruntime": its library may be loaded for the package

  void AddTo(CLI::App* command);
  // The same without --seconds and --fallback, for commands that run the package once.
  void AddInputsTo(CLI::App* command, const std::string& package_text);
  // What they say to the compiler of a model.
  ModelPackageOptions ForModel() const { return {.shapes = shapes, .threads = threads, .fallback = !fallback.empty()}; }
};

// A usage error if both a file and shapes are given, because the arrays have shapes, or if a shape is none.
absl::Status CheckInputOptions(const TimedRunOptions& options);

// Sets the inputs that the options say: the arrays of a file, or random ones of a fixed seed at the given shapes. Usage
// errors as CheckInputOptions, and for an input that the package does not have.
absl::Status SetInputs(run::LoadedPackage& package, const TimedRunOptions& options);

// Loads the package, and prints to standard error which of its programs were passed over. fallback: the value of
// --fallback; empty: a package must not load ONNX Runtime, unless the environment allows it. Errors as
// run::LoadedPackage::Load.
absl::StatusOr<run::LoadedPackage> LoadPackage(const std::string& path, int threads, const std::string& fallback);

}  // namespace hone::cli

#endif  // HONE_CLI_TIMED_RUN_OPTIONS_H_
