// The options that `tune`, `compile` and `submit` share: which model, with which shapes, for which target.
#ifndef HONE_CLI_MODEL_OPTIONS_H_
#define HONE_CLI_MODEL_OPTIONS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "compiler/codegen/target.h"
#include "compiler/graph/plan.h"

namespace hone::cli {

struct ModelOptions {
  std::string model;                // path of the ONNX file
  std::vector<std::string> shapes;  // "name=1,3,224,224"
  std::string target = "cpu";
  int threads = 0;  // overrides the target's; 0 does not

  void AddTo(CLI::App* command);

  // Usage errors name the option that makes no sense.
  absl::StatusOr<graph::ImportOptions> Import() const;
  absl::StatusOr<codegen::Target> Target() const;
};

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_OPTIONS_H_
