// SPDX-License-Identifier: Apache-2.0
// The reference of a comparison: a model as its file says, one kernel for each node. The only pass splits recurrences
// of many steps, which else take minutes to compile.
//
// The kernels are compiled as plain loops, by the same compiler as references of tuning: LLVM's standard passes,
// nothing vectorized by Hone, nothing fused. Or the interpreter runs them, which is slow and shares no code generator
// with the package (decision 0281). Start with Make and Run.
#ifndef HONE_DEPLOY_DIFF_REFERENCE_MODEL_H_
#define HONE_DEPLOY_DIFF_REFERENCE_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/temporary_folder.h"
#include "compiler/graph/plan.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/npz.h"

namespace hone::diff {

class ReferenceModel {
 public:
  struct Options {
    graph::ImportOptions import;       // with numbers for the shapes of all inputs
    bool interpret = false;            // whether the interpreter runs it
    int threads = 0;                   // that generate code; 0: one per CPU
    bool allows_onnx_runtime = false;  // for parts of the model that it computes (import.fallback)
    std::function<void(size_t done, size_t all)> progress = {};  // as in package::KernelOptions
  };
  // Errors are those of the import and of the compiler.
  static absl::StatusOr<ReferenceModel> Make(const std::string& onnx_path, const Options& options);

  // Its calls are in the order of the file, and its values have no axes.
  const graph::Plan& plan() const { return plan_; }

  // Called for each value, given by its index in plan().values, after the call that computes it, and at the end for
  // each output of the model by its index in plan().outputs. shape: of the tensor that holds it. The watch may change
  // the elements of a value; later calls read the changed ones.
  struct Watch {
    std::function<void(size_t value, std::span<const int64_t> shape, std::span<uint8_t> elements)> on_value;
    std::function<void(size_t output, std::span<const int64_t> shape, std::span<const uint8_t> elements)> on_output;
  };
  // inputs: one for each input of the plan, by name. InvalidArgument: one is missing, or has another type or shape.
  absl::Status Run(std::span<const run::ArrayView> inputs, const Watch& watch);

 private:
  explicit ReferenceModel(graph::Plan plan) : plan_(std::move(plan)) {}
  absl::Status Compile(const Options& options);
  absl::Status RunCompiled(const std::vector<run::ArrayView>& inputs, const Watch& watch);
  absl::Status Interpret(const std::vector<run::ArrayView>& inputs, const Watch& watch) const;
  // The inputs in the order of the plan.
  absl::StatusOr<std::vector<run::ArrayView>> InOrder(std::span<const run::ArrayView> inputs) const;

  graph::Plan plan_;
  std::vector<std::vector<size_t>> values_of_;  // per tensor without alias_of: its values, as indices in plan_.values
  std::optional<TemporaryFolder> folder_;       // of the compiled package; empty if it is interpreted
  std::optional<run::LoadedPackage> package_;
};

}  // namespace hone::diff

#endif  // HONE_DEPLOY_DIFF_REFERENCE_MODEL_H_
