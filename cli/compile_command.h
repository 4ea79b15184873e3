// SPDX-License-Identifier: Apache-2.0
// `hone compile`: compiles a model to a package with the best schedules of the records or of a lock file.
#ifndef HONE_CLI_COMPILE_COMMAND_H_
#define HONE_CLI_COMPILE_COMMAND_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

void AddCompileCommand(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_COMPILE_COMMAND_H_
