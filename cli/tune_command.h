// SPDX-License-Identifier: Apache-2.0
// `hone tune`: searches for the fastest schedule of every kernel of a model, through a tracker, and records all
// measurements.
#ifndef HONE_CLI_TUNE_COMMAND_H_
#define HONE_CLI_TUNE_COMMAND_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

void AddTuneCommand(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_TUNE_COMMAND_H_
