// SPDX-License-Identifier: Apache-2.0
// `hone run PACKAGE --input IN.npz --output OUT.npz [--threads N]`: runs a package once on arrays from a file.
//
// The arrays have the names of the model's inputs and outputs. Their types and shapes must match the model's exactly.
#ifndef HONE_CLI_RUN_COMMAND_H_
#define HONE_CLI_RUN_COMMAND_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

// Follows cli/command.h. `app` and `result` outlive the parse.
void AddRunCommand(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_RUN_COMMAND_H_
