// SPDX-License-Identifier: Apache-2.0
// `hone up`: runs a whole farm on this machine (tracker, tuner, agent and dashboard) until Ctrl-C. Its state is kept in
// a folder, and the next `hone up` resumes from it.
#ifndef HONE_CLI_UP_COMMAND_H_
#define HONE_CLI_UP_COMMAND_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace hone::cli {

void AddUpCommand(CLI::App& app, absl::Status* result);

}  // namespace hone::cli

#endif  // HONE_CLI_UP_COMMAND_H_
