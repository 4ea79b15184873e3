// SPDX-License-Identifier: Apache-2.0
// The signal handlers of a child: a crash tells the launcher which signal it was and which buffer was hit.
#ifndef HONE_DEVICE_AGENT_CHILD_FAULT_REPORTS_H_
#define HONE_DEVICE_AGENT_CHILD_FAULT_REPORTS_H_

#include "device_agent/visit/child_channel.h"
#include "device_agent/visit/guarded_memory.h"

namespace hone::agent {

// Installs handlers for the signals of a crash. They send a kFault message through `channel_to_launcher`, with the
// buffer of `regions` that was hit, and end the process. Both arguments must live as long as the process. Call it once
// per process.
void ReportFaults(const ChildChannel& channel_to_launcher, const RegionTable& regions);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_FAULT_REPORTS_H_
