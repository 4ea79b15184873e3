// SPDX-License-Identifier: Apache-2.0
// A package loaded by the runtime, for the commands and the processes that run one. Wraps the runtime's C interface
// with Status, ownership and the package's metadata.
#ifndef HONE_DEPLOY_RUN_LOADED_PACKAGE_H_
#define HONE_DEPLOY_RUN_LOADED_PACKAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/package/metadata.h"
#include "deploy/run/npz.h"
#include "deploy/run/shape_text.h"
#include "deploy/runtime/hone.h"

namespace hone::run {

inline constexpr uint64_t kRandomInputsSeed = 1;  // of FillInputs, wherever a caller gives no inputs

// A node of the ONNX file from which a package was made.
struct ModelNode {
  std::string name, op;
};

// What one kernel computes in one run of its model.
struct KernelWork {
  int64_t calls = 0;
  double flops = 0, bytes = 0;  // of one call, as in package::KernelMetadata
};

class LoadedPackage {
 public:
  struct Options {
    int threads = 0;  // as for the constructor of ThreadPool (base/thread_pool.h)
    // Whether ONNX Runtime may be loaded for the package; the environment may allow it, too.
    bool allows_onnx_runtime = false;
    std::string device;  // as in HoneLoadOptions; empty: no restriction
  };
  // Errors name `path`: kNotFound (cannot be opened), kDataLoss (damaged), kFailedPrecondition (no program for this
  // machine), kResourceExhausted (memory), kInvalidArgument (threads).
  static absl::StatusOr<LoadedPackage> Load(const std::string& path, const Options& options);
  // The same for an open file, which stays the caller's. Errors do not name it.
  static absl::StatusOr<LoadedPackage> LoadFile(int file, const Options& options);

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

  // The calls, operations and bytes of each kernel of the program that runs. kFailedPrecondition: they are not known;
  // the text says why.
  absl::StatusOr<std::vector<KernelWork>> Work() const;

  // The nodes of the model's file that a call of the program that runs computes, in the order of the file.
  std::vector<ModelNode> NodesOf(size_t call) const;

  // Sets the shapes of inputs. kNotFound: there is no such input. kInvalidArgument: it has no such shape.
  absl::Status Resize(const std::vector<NamedShape>& shapes);

  // Fills every input without a default with random values. The range is the one that the package gives for the input,
  // else [-1, 1) for floats, and 0 and 1 for integers, which are valid indices into every axis of at least two
  // elements.
  absl::Status FillInputs(uint64_t seed);

  // As hone_prepare: loads what the next run needs.
  absl::Status Prepare();
  absl::Status Run();
  // As hone_run_watched.
  absl::Status RunWatched(const std::function<void(const HoneValue& value)>& watch);

  // The outputs of the last run, by name; they refer to the model's memory, which the next run overwrites.
  absl::StatusOr<std::vector<ArrayView>> Outputs() const;

 private:
  struct Freer {
    void operator()(HoneModel* model) const { hone_free(model); }
  };

  static absl::StatusOr<LoadedPackage> Adopt(HoneModel* model);

  std::unique_ptr<HoneModel, Freer> model_;
  std::vector<HonePort> inputs_, outputs_;
};

// The last failure of the runtime on this thread as a Status; OK for HONE_OK.
absl::Status RuntimeError(HoneStatus status);

}  // namespace hone::run

#endif  // HONE_DEPLOY_RUN_LOADED_PACKAGE_H_
