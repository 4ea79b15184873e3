// SPDX-License-Identifier: Apache-2.0
// The convention every subcommand of `hone` follows; one file per subcommand, and this is all they share.
//
// A subcommand file cli/x_command.{h,cc} exposes one free function
//     void AddXCommand(CLI::App& app, absl::Status* result);
// which adds the subcommand to `app`. Its options live in a shared_ptr captured by the callback, and the callback
// assigns *result; it prints nothing on failure and never exits. Results go to standard output (with --json: one JSON
// document and nothing else), progress to standard error (output.h). main adds every subcommand, parses, and returns
// FinishCommand(result): start reading at cli/main.cc.
#ifndef HONE_CLI_COMMAND_H_
#define HONE_CLI_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace hone::cli {

enum ExitCode : int { kSuccess = 0, kWorkFailed = 1, kWrongUsage = 2, kRecordsMissing = 3 };

// A command line that parses but makes no sense, say two options that exclude each other: ends as kWrongUsage. The
// mark is a payload, not a code, since rooms below return kInvalidArgument for bad files too.
inline constexpr char kUsageMark[] = "hone.cli/usage";

inline absl::Status UsageError(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsageMark, absl::Cord());
  return status;
}

// What --require asked for is not there: ends as kRecordsMissing, so that a script can tell it from a failure.
inline constexpr char kMissingMark[] = "hone.cli/missing";

inline absl::Status RecordsMissingError(const std::string& message) {
  absl::Status status = absl::NotFoundError(message);
  status.SetPayload(kMissingMark, absl::Cord());
  return status;
}

// Prints "hone: <message>" on standard error unless `status` is OK, and returns the exit code of the process.
int FinishCommand(const absl::Status& status);

}  // namespace hone::cli

#endif  // HONE_CLI_COMMAND_H_
