// A file system that holds nothing but what a policy names.
#ifndef HONE_DEVICE_AGENT_FILE_SYSTEM_H_
#define HONE_DEVICE_AGENT_FILE_SYSTEM_H_

#include "absl/status/status.h"
#include "device_agent/sandbox.h"

namespace hone::agent {

// For a process with a mount namespace, and capabilities in it: from now on its root is an empty folder with the
// policy's files and folders in their places, all but the writable ones read-only, and a /proc of its processes. What
// the policy names and the system has not is left out. kUnavailable: what cannot be mounted; the old root may then be
// there still.
absl::Status EnterOwnFiles(const SandboxPolicy& policy);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_FILE_SYSTEM_H_
