// SPDX-License-Identifier: Apache-2.0
// Adds a command that talks to a tracker to its parent command, with the tracker's options and --json. Not here: the
// options themselves (tracker_options.h). Start at AddTrackerCommand.
#ifndef HONE_CLI_TRACKER_COMMAND_H_
#define HONE_CLI_TRACKER_COMMAND_H_

#include <memory>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/tracker_options.h"

namespace hone::cli {

// Options: a struct with the members `TrackerOptions tracker` and `bool json`; the command shares its ownership. work:
// runs the command; its status is assigned to *result, which must outlive the parent. Returns the new command, which
// the parent owns.
template <typename Options>
CLI::App* AddTrackerCommand(CLI::App& parent, const char* name, const char* help,
                            const std::shared_ptr<Options>& options, absl::Status (*work)(Options&),
                            absl::Status* result) {
  CLI::App* command = parent.add_subcommand(name, help);
  options->tracker.AddTo(command, TrackerOptions::Need::kRequired);
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  command->callback([options, work, result] { *result = work(*options); });
  return command;
}

}  // namespace hone::cli

#endif  // HONE_CLI_TRACKER_COMMAND_H_
