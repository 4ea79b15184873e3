// SPDX-License-Identifier: Apache-2.0
// A package loaded by the runtime, for the commands that run one: the C interface with Status, ownership and metadata.
#ifndef HONE_CLI_LOADED_PACKAGE_H_
#define HONE_CLI_LOADED_PACKAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/package/metadata.h"
#include "deploy/runtime/hone.h"

namespace hone::cli {

class LoadedPackage {
 public:
  // Tells on standard error which of the package's programs were passed over. threads: 0 as in base/thread_pool.h.
  // Errors name `path`: NotFound (cannot be opened), DataLoss (damaged), FailedPrecondition (not for this machine),
  // ResourceExhausted (memory), InvalidArgument (threads).
  static absl::StatusOr<LoadedPackage> Load(const std::string& path, int threads);

  HoneModel* model() const { return model_.get(); }
  const std::vector<HonePort>& inputs() const { return inputs_; }
  const std::vector<HonePort>& outputs() const { return outputs_; }
  int threads() const { return hone_threads(model_.get()); }

  std::string target() const { return hone_target(model_.get()); }  // of the program that runs
  // The programs before it, each with the reason why it does not.
  std::vector<std::string> PassedOver() const;

  // DataLoss if the package's description is not what the packager writes.
  absl::StatusOr<package::PackageMetadata> Metadata() const;
  // Of the program that runs, without kernels if the description says nothing of it.
  package::ProgramMetadata RunningProgram(const package::PackageMetadata& metadata) const;

  // Fills every input with random values: of the range that the package gives, else floats in [-1, 1) and integers 0
  // and 1 (valid as indices into anything that is not trivial).
  absl::Status FillInputs(uint64_t seed);

  absl::Status Run();

 private:
  struct Freer {
    void operator()(HoneModel* model) const { hone_free(model); }
  };

  std::unique_ptr<HoneModel, Freer> model_;
  std::vector<HonePort> inputs_, outputs_;
};

// The last failure of the runtime on this thread as a Status.
absl::Status RuntimeError(HoneStatus status);

}  // namespace hone::cli

#endif  // HONE_CLI_LOADED_PACKAGE_H_
