// SPDX-License-Identifier: Apache-2.0
// How a command that talks to a tracker is added to its parent: with the tracker's options, --json, and what it does.
// Not here: the options themselves (tracker_options.h). Start at AddTrackerCommand.
#ifndef HONE_CLI_TRACKER_COMMAND_H_
#define HONE_CLI_TRACKER_COMMAND_H_

#include <memory>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace hone::cli {

// Options: a struct with `TrackerOptions tracker` and `bool json`, kept until the command has run. *result becomes what
// work returns, and must outlive the parent. The command returned is the parent's.
template <typename Options>
CLI::App* AddTrackerCommand(CLI::App& parent, const char* name, const char* help,
                            const std::shared_ptr<Options>& options, absl::Status (*work)(Options&),
                            absl::Status* result) {
  CLI::App* command = parent.add_subcommand(name, help);
  options->tracker.AddTo(command, true);
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  command->callback([options, work, result] { *result = work(*options); });
  return command;
}

}  // namespace hone::cli

#endif  // HONE_CLI_TRACKER_COMMAND_H_
