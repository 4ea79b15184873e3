// SPDX-License-Identifier: Apache-2.0
// A file system that holds nothing but what a policy names.
#ifndef HONE_DEVICE_AGENT_SANDBOX_FILE_SYSTEM_H_
#define HONE_DEVICE_AGENT_SANDBOX_FILE_SYSTEM_H_

#include "absl/status/status.h"
#include "device_agent/sandbox/sandbox.h"

namespace hone::agent {

// For a process with a mount namespace, and capabilities in it: from now on its root is an empty folder with the
// policy's files and folders in their places, all but the writable ones read-only, and a /proc of its processes. What
// the policy names and the system has not is left out. kUnavailable: what cannot be mounted; the old root may then be
// there still.
absl::Status MountPolicyRoot(const SandboxPolicy& policy);

// For a process of a new namespace of processes, with capabilities in it: all files stay, but /proc becomes that of its
// namespace, where it has the numbers that it knows itself by. kUnavailable: the system hides parts of its /proc, as
// containers do, and lets nobody mount another.
absl::Status MountOwnProc();

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_FILE_SYSTEM_H_
