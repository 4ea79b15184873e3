// SPDX-License-Identifier: Apache-2.0
// The launcher process: one thread that measures batches on one device, confined, and maps no kernel's code. It forks
// the children in which kernels run and judges their results (visit_runner.h). agent/launcher_process.h is the agent's
// side.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_LAUNCHER_MAIN_H_
#define HONE_DEVICE_AGENT_LAUNCHER_LAUNCHER_MAIN_H_

#include "device_agent/devices/device.h"

namespace hone::agent {

// Confines this process, sends the layers of its sandbox, then serves batches for `device` from the socket `channel`
// until the agent closes it. While it measures, it holds the host lock (base/host_lock.h). `cancel` becomes readable
// when the visit under way is to end. Returns the exit status.
int LauncherMain(const Device& device, int channel, int cancel);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_LAUNCHER_MAIN_H_
