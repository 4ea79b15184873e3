// SPDX-License-Identifier: Apache-2.0
// A version of the model, compiled for this machine with default schedules, to be run on samples.
#ifndef HONE_DEPLOY_QUANTIZE_COMPILED_MODEL_H_
#define HONE_DEPLOY_QUANTIZE_COMPILED_MODEL_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/temporary_folder.h"
#include "compiler/graph/plan.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/npz.h"

namespace hone::quantize {

class ModelFile;

// How a model is imported and compiled.
struct CompileOptions {
  graph::ImportOptions import;  // with ranges for the shapes of the samples
  int threads = 0;              // that compile and run; 0: as run::LoadedPackage::Options
  bool allows_onnx_runtime = false;
  std::function<void(size_t done, size_t all)> progress = {};  // as package::KernelOptions
};

class CompiledModel {
 public:
  // Errors are those of package::CompileModel.
  static absl::StatusOr<CompiledModel> Compile(const ModelFile& model, const CompileOptions& options);
  // The same for a file as it is.
  static absl::StatusOr<CompiledModel> CompileFile(const std::string& path, const CompileOptions& options);

  // The outputs, which the next run overwrites. arrays: of all inputs without a default, by name.
  absl::StatusOr<std::vector<run::ArrayView>> Run(std::span<const run::ArrayView> arrays);
  // The same for random inputs of the largest shapes (run::LoadedPackage::FillInputs), the same for every version.
  absl::StatusOr<std::vector<run::ArrayView>> RunOnRandomInputs();

 private:
  CompiledModel(TemporaryFolder folder, run::LoadedPackage package)
      : folder_(std::move(folder)), package_(std::move(package)) {}

  TemporaryFolder folder_;  // of the package
  run::LoadedPackage package_;
};

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_COMPILED_MODEL_H_
