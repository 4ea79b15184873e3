// SPDX-License-Identifier: Apache-2.0
// Runs a program of the system to its end and keeps what it says; it ends with the thread that waits for it. Not for
// programs that go on beside this one, nor for what must not be trusted.
#ifndef HONE_BASE_RUN_PROGRAM_H_
#define HONE_BASE_RUN_PROGRAM_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

// What it wrote to standard output and standard error, in that order of time; its standard input is empty. `command` is
// the program, looked for on PATH where its name has no slash, and its arguments. NotFound: it is not there.
// ResourceExhausted: no process. Internal: it ended with another status than 0; the message has what it wrote.
absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& command);

// The program of that name on PATH; empty if there is none.
std::string FindProgram(std::string_view name);

}  // namespace hone

#endif  // HONE_BASE_RUN_PROGRAM_H_
