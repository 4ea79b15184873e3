// SPDX-License-Identifier: Apache-2.0
// The commands for the jobs and devices of a farm: `hone submit`, `jobs`, `watch`, `cancel`, `devices`, `drain`.
#ifndef HONE_CLI_FARM_COMMANDS_H_
#define HONE_CLI_FARM_COMMANDS_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

void AddFarmCommands(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_FARM_COMMANDS_H_
