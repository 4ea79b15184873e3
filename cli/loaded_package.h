// SPDX-License-Identifier: Apache-2.0
// A package loaded by the runtime, for the commands that run one. Wraps the runtime's C interface with Status,
// ownership and the package's metadata.
#ifndef HONE_CLI_LOADED_PACKAGE_H_
#define HONE_CLI_LOADED_PACKAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/package/metadata.h"
#include "deploy/runtime/hone.h"

namespace hone::cli {

// A node of the ONNX file from which a package was made.
struct ModelNode {
  std::string name, op;
};

class LoadedPackage {
 public:
  // Loads the package, and prints to standard error which of its programs were skipped. threads: as for the constructor
  // of ThreadPool (base/thread_pool.h). fallback: the value of --fallback; empty: a package must not load ONNX Runtime,
  // unless the environment allows it. Errors name `path`: kNotFound (cannot be opened), kDataLoss (damaged),
  // kFailedPrecondition (no program for this machine), kResourceExhausted (memory), kInvalidArgument (threads).
  static absl::StatusOr<LoadedPackage> Load(const std::string& path, int threads, const std::string& fallback);

  HoneModel* model() const { return model_.get(); }
  const std::vector<HonePort>& inputs() const { return inputs_; }
  const std::vector<HonePort>& outputs() const { return outputs_; }
  int threads() const { return hone_threads(model_.get()); }

  std::string target() const { return hone_target(model_.get()); }  // the target of the program that runs
  // The programs of the package before the one that runs, each with the reason why it cannot run here.
  std::vector<std::string> PassedOver() const;

  // kDataLoss: the package's description is not in the format that the packager writes.
  absl::StatusOr<package::PackageMetadata> Metadata() const;
  // The description of the program that runs; without kernels if `metadata` does not describe it.
  package::ProgramMetadata RunningProgram(const package::PackageMetadata& metadata) const;

  // The nodes of the model's file that a call of the program that runs computes, in the order of the file.
  std::vector<ModelNode> NodesOf(size_t call) const;

  // Sets the shapes of inputs: "ids=1,37", numbers only. Usage errors name the input.
  absl::Status Resize(const std::vector<std::string>& shapes);

  // Fills every input without a default with random values. The range is the one that the package gives for the input,
  // else [-1, 1) for floats, and 0 and 1 for integers, which are valid indices into every axis of at least two
  // elements.
  absl::Status FillInputs(uint64_t seed);

  absl::Status Run();

 private:
  struct Freer {
    void operator()(HoneModel* model) const { hone_free(model); }
  };

  std::unique_ptr<HoneModel, Freer> model_;
  std::vector<HonePort> inputs_, outputs_;
};

// The last failure of the runtime on this thread as a Status; OK for HONE_OK.
absl::Status RuntimeError(HoneStatus status);

}  // namespace hone::cli

#endif  // HONE_CLI_LOADED_PACKAGE_H_
