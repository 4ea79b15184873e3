// SPDX-License-Identifier: Apache-2.0
// Packages that a command makes of a model only to run them: `hone bench net.onnx` measures what `hone compile
// net.onnx` makes, with the same records.
//
// The packages are in a temporary folder until the end of the command. Not here: `hone compile` itself, and the runs.
// Start at ModelPackages.
#ifndef HONE_CLI_MODEL_PACKAGES_H_
#define HONE_CLI_MODEL_PACKAGES_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/temporary_folder.h"
#include "cli/tracker_options.h"
#include "deploy/package/compile_kernels.h"
#include "hone/v1/admin.pb.h"
#include "records/source.h"

namespace hone::cli {

// Whether a command that takes a package or a model takes this file for a model: its name ends with .onnx.
bool IsModel(const std::string& path);

// What these commands say of the model; everything else is as `hone compile` does by default.
struct ModelPackageOptions {
  std::vector<std::string> shapes;  // as --shape of `hone compile`
  int threads = 0;                  // 0: those of the target
  bool fallback = false;            // ONNX Runtime computes what Hone cannot compile
};

// Compiles models when they are needed, each once for each place. Ctrl-C must still end the process while it compiles.
// Used by one thread.
class ModelPackages {
 public:
  // tracker: of the farm whose records count, if one is given.
  ModelPackages(ModelPackageOptions options, TrackerOptions tracker)
      : options_(std::move(options)), tracker_(std::move(tracker)) {}

  // The path of a package that runs on this machine: of one made of the model, or `path` itself if it is a package.
  // Without a tracker the records are those of the user, if there are any. Errors as `hone compile`.
  absl::StatusOr<std::string> ForThisMachine(const std::string& path);
  // The same for the devices among `known` that the value `words` of one --device selects, with the farm's records.
  absl::StatusOr<std::string> ForDevices(const std::string& path, const std::vector<v1::Device>& known,
                                         const std::string& words);

 private:
  using Key = std::vector<std::string>;  // the model, then the target and the fingerprint of each place

  absl::StatusOr<std::string> Make(const Key& key, std::vector<package::KernelOptions> targets, bool warns);

  const ModelPackageOptions options_;
  TrackerOptions tracker_;
  std::optional<TemporaryFolder> folder_;           // of the packages; made for the first
  std::shared_ptr<const records::Source> records_;  // of the farm; null: not opened yet
  std::map<Key, std::string> made_;                 // paths of packages
};

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_PACKAGES_H_
