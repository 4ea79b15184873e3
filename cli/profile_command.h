// SPDX-License-Identifier: Apache-2.0
// `hone profile PACKAGE [--threads N] [--json]`: where the time of a run goes, kernel by kernel, and how near each
// kernel is to what this machine can do (base/roofline.h, measured at the start).
//
// Calls of the same kernel are added up.
#ifndef HONE_CLI_PROFILE_COMMAND_H_
#define HONE_CLI_PROFILE_COMMAND_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

// Follows cli/command.h. `app` and `result` outlive the parse.
void AddProfileCommand(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_PROFILE_COMMAND_H_
