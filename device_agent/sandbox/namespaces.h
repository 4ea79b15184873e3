// SPDX-License-Identifier: Apache-2.0
// A world of its own for the launcher and its children: namespaces of Linux, a file system with nothing in it but what
// the policy names, and a user who owns nothing.
//
// As root it becomes another user; as an ordinary user it enters a user namespace, in which it may do the rest. Each
// part is tried by itself, since systems forbid some of them, and told as a layer. Start at EnterNamespaces.
#ifndef HONE_DEVICE_AGENT_SANDBOX_NAMESPACES_H_
#define HONE_DEVICE_AGENT_SANDBOX_NAMESPACES_H_

#include <sys/types.h>

#include <vector>

#include "absl/status/status.h"
#include "device_agent/sandbox/sandbox.h"

namespace hone::agent {

// For a process with one thread. Where there is a namespace of processes, returns in a new process, the first of it;
// the old one closes its files, waits for the new one's end, and ends likewise. Files that are open stay open in the
// new one. Either ends when the process that started this one does. An error where root would give a folder of the
// policy to the new user and it is not what the agent made: then nothing may be measured.
absl::Status EnterNamespaces(const SandboxPolicy& policy, std::vector<SandboxLayer>& layers);

// From now on the system kills this process when `parent`, which forked it, ends; ends it here if that has happened.
// Who forks takes its own number before it does: a child that asks for its parent's may be an orphan already.
void EndWithParent(pid_t parent);

// Closes all files of this process from that number on, but one of them.
void CloseFiles(int first, int kept);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_SANDBOX_NAMESPACES_H_
