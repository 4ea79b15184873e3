// SPDX-License-Identifier: Apache-2.0
// The entry point of a child process: all that runs in the same process as untrusted kernels. The only header of this
// folder that the launcher may include.
//
// A child starts its device, which takes some drivers a second, then waits for its task, so the launcher can start it
// before there is a visit. It reports each step before and after it (visit/message.h), so that the launcher knows which
// candidate to blame when the child falls silent. The launcher decides what follows (launcher/visit_runner.h).
#ifndef HONE_DEVICE_AGENT_CHILD_RUN_CHILD_H_
#define HONE_DEVICE_AGENT_CHILD_RUN_CHILD_H_

#include <cstdint>

#include "device_agent/devices/cold_numbers.h"
#include "device_agent/devices/device.h"
#include "device_agent/sandbox/system_calls.h"

namespace hone::agent {

// What a child inherits from the launcher's memory. The pointers must stay valid in the child until it ends.
struct ChildOrigin {
  const Device* device = nullptr;
  const ColdNumbers* cold_numbers = nullptr;
  int64_t memory_limit = 0;  // bytes of address space; 0 for none
  CallFilter filter =
      CallFilter::kListener;  // kNone: the system supports none, as the layers reported to the tracker say
  int threads = 1;            // of the batch that it will get
};

// Called in a freshly forked child with its end of the channel; never returns. It does what the task's purpose says:
// kReference: calls the reference kernel once and stores its outputs in the result memory.
// kBuilding: loads the candidates to verify, one by one, so that the driver compiles them, and reports those that fail.
// kTiming: verifies and races candidates (race.h).
[[noreturn]] void RunChild(const ChildOrigin& origin, int channel);

// The same for a child that runs packages (run_packages.h).
[[noreturn]] void RunPackageChild(const ChildOrigin& origin, int channel);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_RUN_CHILD_H_
