// SPDX-License-Identifier: Apache-2.0
// A root folder that holds only the files which a policy names. A layer of the sandbox (sandbox.h).
#ifndef HONE_DEVICE_AGENT_SANDBOX_FILE_SYSTEM_H_
#define HONE_DEVICE_AGENT_SANDBOX_FILE_SYSTEM_H_

#include "absl/status/status.h"
#include "device_agent/sandbox/sandbox.h"

namespace hone::agent {

// Gives this process a new root: an empty folder with the policy's files and folders at their paths, and a /proc of its
// process namespace. All but the writable folders and the device nodes are read-only. Paths that the system lacks are
// left out. The process must have a mount namespace and capabilities in it. kUnavailable: a mount failed; the process
// may still have the old root.
absl::Status MountPolicyRoot(const SandboxPolicy& policy);

// Mounts a /proc of this process's process namespace and keeps all other files. The process must be in a new process
// namespace, with capabilities in it. kUnavailable: the system forbids it, as containers do that hide parts of /proc.
absl::Status MountOwnProc();

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_FILE_SYSTEM_H_
