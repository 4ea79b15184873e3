// SPDX-License-Identifier: Apache-2.0
// Runs a program of the system to its end and returns its output. The system kills the program if the calling thread
// ends first. Not for programs that keep running beside this one, and not for untrusted programs.
#ifndef HONE_BASE_RUN_PROGRAM_H_
#define HONE_BASE_RUN_PROGRAM_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

// Runs `command`, blocks until it ends, and returns its standard output and standard error in the order in which they
// were written. Its standard input is /dev/null. command: the program and its arguments; a name without a slash is
// looked up on PATH. kNotFound: there is no such program. kResourceExhausted: no process or pipe could be made.
// kInternal: the program failed or was killed; the message contains its output.
absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& command);

// The path of the program of that name on PATH; empty if there is none.
std::string FindProgram(std::string_view name);

}  // namespace hone

#endif  // HONE_BASE_RUN_PROGRAM_H_
