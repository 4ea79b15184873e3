// SPDX-License-Identifier: Apache-2.0
// The convention that every subcommand of `hone` follows. Each subcommand has a file of its own. Start at cli/main.cc.
//
// A subcommand file cli/x_command.cc defines one free function, declared in cli/commands.h,
//     void AddXCommand(CLI::App& app, absl::Status* result);
// which adds the subcommand to `app`. Its options live in a shared_ptr captured by the callback, and the callback
// assigns *result. The callback prints nothing on failure and never exits. Results go to standard output (with --json:
// one JSON document and nothing else), progress to standard error (output.h). main adds every subcommand, parses, and
// returns FinishCommand(result).
#ifndef HONE_CLI_COMMAND_H_
#define HONE_CLI_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace hone::cli {

// The exit codes of `hone` (docs/COMMANDS.md). kRecordsMissing: --require found that records are missing.
// kSlower: `gate` found that a package is slower. kDifferent: `diff` or `run --check` found that a package computes
// something else than its model.
enum ExitCode : int {
  kSuccess = 0,
  kWorkFailed = 1,
  kWrongUsage = 2,
  kRecordsMissing = 3,
  kSlower = 4,
  kDifferent = 5
};

// The status with a mark, by which FinishCommand chooses the exit code.
inline absl::Status Marked(absl::Status status, const char* mark) {
  status.SetPayload(mark, absl::Cord());
  return status;
}

// The error for a command line that parses but makes no sense, such as two options that exclude each other. Its exit
// code is kWrongUsage. The mark is a payload, because other rooms return kInvalidArgument for bad files.
inline constexpr char kUsageMark[] = "hone.cli/usage";

inline absl::Status UsageError(const std::string& message) {
  return Marked(absl::InvalidArgumentError(message), kUsageMark);
}

// The error for records that --require asks for and that do not exist. Its exit code is kRecordsMissing, so that a
// script can tell it from other failures.
inline constexpr char kMissingMark[] = "hone.cli/missing";

inline absl::Status RecordsMissingError(const std::string& message) {
  return Marked(absl::NotFoundError(message), kMissingMark);
}

// The error for a package that is slower than `gate` allows. Its exit code is kSlower.
inline constexpr char kSlowerMark[] = "hone.cli/slower";

inline absl::Status SlowerError(const std::string& message) {
  return Marked(absl::FailedPreconditionError(message), kSlowerMark);
}

// The error for a package that differs from its model. Its exit code is kDifferent.
inline constexpr char kDifferentMark[] = "hone.cli/different";

inline absl::Status DifferentError(const std::string& message) {
  return Marked(absl::FailedPreconditionError(message), kDifferentMark);
}

// Prints "hone: <message>" on standard error unless `status` is OK, and returns the exit code of the process.
int FinishCommand(const absl::Status& status);

}  // namespace hone::cli

#endif  // HONE_CLI_COMMAND_H_
