// SPDX-License-Identifier: Apache-2.0
// The options that `tune`, `compile`, `submit` and `records` share: which model, with which shapes and fixed inputs,
// for which targets.
#ifndef HONE_CLI_MODEL_OPTIONS_H_
#define HONE_CLI_MODEL_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "compiler/target/target.h"

namespace CLI {
class App;
}

namespace hone::cli {

struct ModelOptions {
  std::vector<std::string> models;    // paths of ONNX files
  std::vector<std::string> shapes;    // "name=1,3,224,224"
  std::vector<std::string> bindings;  // "name=1,2,3" or "name=FILE.npy"
  std::vector<std::string> targets;   // none: this host
  std::string reproducers;            // folder; empty: none
  int threads = 0;                    // overrides the target's; 0 does not

  enum class Count { kOne, kSeveral };  // how many of them may be given
  void AddTo(CLI::App* command, Count models, Count targets);
  // For a command that makes sense without a model too: the same as AddTo, with the model as --model.
  void AddOptionalTo(CLI::App* command, Count targets);
  void AddTargetTo(CLI::App* command, Count targets);
  bool given() const { return !models.empty(); }

  // --reproducers, for commands that compile here.
  void AddReproducersTo(CLI::App* command);

  // The files that are named here, to be read: models, and those of --bind.
  std::vector<std::string> Files() const;
  // Reads the files that --bind names. Usage errors name the option that makes no sense.
  absl::StatusOr<graph::ImportOptions> Import() const;
  // All, in the order given; no two are the same, and at least one.
  absl::StatusOr<std::vector<target::Target>> Targets() const;

 private:
  void AddInputsTo(CLI::App* command);
};

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_OPTIONS_H_
