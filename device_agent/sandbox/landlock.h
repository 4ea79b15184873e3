// SPDX-License-Identifier: Apache-2.0
// What Landlock, a part of Linux, takes from a process for good, in the newest version that the running kernel has.
#ifndef HONE_DEVICE_AGENT_SANDBOX_LANDLOCK_H_
#define HONE_DEVICE_AGENT_SANDBOX_LANDLOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "device_agent/sandbox/sandbox.h"

namespace hone::agent {

// No files but the system's libraries and the policy's; from version 4 on no TCP, from version 6 on no signals and no
// abstract sockets to others. Returns the version. kUnavailable: why there is none.
absl::StatusOr<int> RestrictWithLandlock(const SandboxPolicy& policy);

// For a child of a restricted process: its signals do not reach that one either, where Landlock can. Files stay as they
// are.
void BlockOutgoingSignals();

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_LANDLOCK_H_
