// SPDX-License-Identifier: Apache-2.0
// The namespaces, the root folder and the user of the launcher and its children: Linux hides other processes, files and
// networks from them.
//
// Started by root, the launcher becomes another user. Started by an ordinary user, it enters a user namespace, in which
// it may do the rest. Each layer is tried alone and reported, because systems forbid some of them. Start at
// EnterNamespaces.
#ifndef HONE_DEVICE_AGENT_SANDBOX_NAMESPACES_H_
#define HONE_DEVICE_AGENT_SANDBOX_NAMESPACES_H_

#include <sys/types.h>

#include <vector>

#include "absl/status/status.h"
#include "device_agent/sandbox/sandbox.h"

namespace hone::agent {

// Enters the namespaces and appends a layer for each. Also changes the user as described above, gives up all
// capabilities for good, and appends kOwnUser and kNoPrivileges. The process must have one thread. With a process
// namespace it returns in a new process, the first one in it. The old process closes its files, waits for the new one
// and exits with its status; files that were open stay open in the new one. Both end when the process that started them
// ends. An error means that nothing may be measured: a writable folder of the policy, which root would give to the new
// user, is not what the agent created.
absl::Status EnterNamespaces(const SandboxPolicy& policy, std::vector<SandboxLayer>& layers);

// Makes the system kill this process when `parent`, which forked it, ends. Exits at once if that has happened. The
// parent must read its own number before it forks, because getppid() of an orphan names another process.
void EndWithParent(pid_t parent);

// Closes all files of this process from descriptor `first` on, except `kept`. `kept` must be at least `first`; -1 would
// close the files before `first` too.
void CloseFiles(int first, int kept);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_NAMESPACES_H_
