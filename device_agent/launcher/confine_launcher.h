// SPDX-License-Identifier: Apache-2.0
// The launcher's step into the sandbox, and the test of the system call filter that its children will use. The layers
// themselves are in sandbox/; ConfineChild (sandbox/sandbox.h) is the children's step.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_CONFINE_LAUNCHER_H_
#define HONE_DEVICE_AGENT_LAUNCHER_CONFINE_LAUNCHER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/sandbox/sandbox.h"
#include "device_agent/sandbox/system_calls.h"

namespace hone::agent {

// Finds the strongest system call filter that this process's children can have, by forking children that try each.
// ConfineLauncher calls it after the other layers, which may affect the result. The process must have one thread. Only
// a trial shows whether the system gives a listener, and whether the listener can let a call continue.
CallFilter DetectCallFilter(const SandboxPolicy& policy);

struct Confinement {
  std::vector<SandboxLayer> layers;       // every layer but kControlGroup, which the agent adds
  CallFilter filter = CallFilter::kNone;  // for ConfineChild
};
// Confines this process, the launcher, for good. The process must have one thread. It may return in a new process, and
// fails as EnterNamespaces (sandbox/namespaces.h) does.
absl::StatusOr<Confinement> ConfineLauncher(const SandboxPolicy& policy);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_CONFINE_LAUNCHER_H_
