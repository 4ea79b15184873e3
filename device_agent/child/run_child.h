// SPDX-License-Identifier: Apache-2.0
// The work of one child of a visit: everything that happens in the same process as code that cannot be trusted.
//
// A child starts its device, which may take a driver a second, and waits for its task: it may be there before the visit
// is. A measuring child then verifies the candidates it is given one after the other, times each briefly, and races
// those that were verified (here or by the child before it). It tells the launcher each step before and after
// (visit/message.h), so that the launcher knows whom to blame when it falls silent. What to do about that is the
// launcher's (launcher/visit_runner.h).
#ifndef HONE_DEVICE_AGENT_CHILD_RUN_CHILD_H_
#define HONE_DEVICE_AGENT_CHILD_RUN_CHILD_H_

#include <cstdint>

#include "device_agent/devices/cold_numbers.h"
#include "device_agent/devices/device.h"
#include "device_agent/sandbox/system_calls.h"

namespace hone::agent {

// What a child has from its parent's memory. All must outlive it there.
struct ChildOrigin {
  const Device* device = nullptr;
  const ColdNumbers* cold_numbers = nullptr;
  int64_t memory_limit = 0;                   // bytes of address space; 0 for none
  CallFilter filter = CallFilter::kListener;  // kNone: the system has none, as the tracker was told
  int threads = 1;                            // of its batch
};

// In a freshly forked child, with its end of the channel; never returns. Its task is one of these:
// kReference: runs the reference kernel once and shows its outputs.
// kBuilding: loads the candidates to verify, one after the other, so that their code is built; tells of those that have
// none.
// kTiming: as above.
[[noreturn]] void RunChild(const ChildOrigin& origin, int channel);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_RUN_CHILD_H_
