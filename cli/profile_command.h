// SPDX-License-Identifier: Apache-2.0
// `hone profile PACKAGE [--threads N] [--json]`: shows the time of each kernel in a run, and compares it with the
// roofline of this machine (base/roofline.h), which is measured at the start.
//
// The times of all calls of a kernel are added up.
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
