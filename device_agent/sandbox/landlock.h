// SPDX-License-Identifier: Apache-2.0
// Landlock, a part of Linux with which a process gives up access to files, the network and signals for good. A layer of
// the sandbox (sandbox.h).
#ifndef HONE_DEVICE_AGENT_SANDBOX_LANDLOCK_H_
#define HONE_DEVICE_AGENT_SANDBOX_LANDLOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "device_agent/sandbox/sandbox.h"

namespace hone::agent {

// Restricts this process to the files of policy.AllReadable() and the policy's folders and nodes. Landlock version 4
// also forbids TCP; version 6 also forbids signals and abstract sockets to outside processes. Uses the newest version
// that the system has and returns it. kUnavailable: the system has no Landlock; the text says why.
absl::StatusOr<int> RestrictWithLandlock(const SandboxPolicy& policy);

// For a child of a restricted process: forbids signals to its parent too, if Landlock has version 6. Access to files
// stays unchanged.
void BlockOutgoingSignals();

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_LANDLOCK_H_
