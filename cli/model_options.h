// The options that `tune`, `compile` and `submit` share: which model, with which shapes and fixed inputs, for which
// targets.
#ifndef HONE_CLI_MODEL_OPTIONS_H_
#define HONE_CLI_MODEL_OPTIONS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "compiler/target/target.h"

namespace hone::cli {

struct ModelOptions {
  std::string model;                  // path of the ONNX file
  std::vector<std::string> shapes;    // "name=1,3,224,224"
  std::vector<std::string> bindings;  // "name=1,2,3" or "name=FILE.npy"
  std::vector<std::string> targets = {"cpu"};
  std::string reproducers;  // folder; empty: none
  int threads = 0;          // overrides the target's; 0 does not

  enum class TargetCount { kOne, kSeveral };  // how often --target may be given
  void AddTo(CLI::App* command, TargetCount count = TargetCount::kOne);

  // --reproducers, for commands that compile here.
  void AddReproducersTo(CLI::App* command);

  // Reads the files that --bind names. Usage errors name the option that makes no sense.
  absl::StatusOr<graph::ImportOptions> Import() const;
  absl::StatusOr<target::Target> Target() const;  // the only one
  // All, in the order given; no two are the same.
  absl::StatusOr<std::vector<target::Target>> Targets() const;
};

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_OPTIONS_H_
