// SPDX-License-Identifier: Apache-2.0
// The work of one child of a visit: everything that happens in the same process as code that cannot be trusted.
//
// A child starts its device, which may take a driver a second, and waits for its task: it may be there before the visit
// is. A measuring child then verifies the candidates it is given one after the other, times each briefly, and races
// those that were verified (here or by the child before it). It tells the launcher each step before and after
// (visit_message.h), so that the launcher knows whom to blame when it falls silent. What to do about that is the
// launcher's (visit.h).
#ifndef HONE_DEVICE_AGENT_CHILD_RUN_CHILD_H_
#define HONE_DEVICE_AGENT_CHILD_RUN_CHILD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "device_agent/devices/cold_numbers.h"
#include "device_agent/devices/device.h"
#include "device_agent/launcher/child_process.h"
#include "device_agent/sandbox/system_calls.h"
#include "device_agent/visit/memory_file.h"
#include "device_agent/visit/result_memory.h"
#include "device_agent/visit/task.h"

namespace hone::agent {

// What a child has from its parent's memory. All must outlive it there.
struct ChildOrigin {
  const Device* device = nullptr;
  const ColdNumbers* cold_numbers = nullptr;
  int64_t memory_limit = 0;                   // bytes of address space; 0 for none
  CallFilter filter = CallFilter::kListener;  // kNone: the system has none, as the tracker was told
  int threads = 1;                            // of its batch
};

// What it is given when there is something to do.
struct ChildWork {
  const VisitBatch* batch = nullptr;
  const MemoryFile* artifact = nullptr;
  const MemoryFile* inputs = nullptr;  // laid out by LayOut
  const Evidence* evidence = nullptr;  // null for a building child, which shows none
  VisitTask task;
};

// In a freshly forked child, with its end of the channel; never returns. Its task is one of these:
// kReference: runs the reference kernel once and shows its outputs.
// kBuilding: loads the candidates to verify, one after the other, so that their code is built; tells of those that have
// none.
// kTiming: as above.
[[noreturn]] void RunChild(const ChildOrigin& origin, int channel);

// In the launcher. kResourceExhausted: no memory.
absl::Status HandOver(const ChildWork& work, WatchedChild& child);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_RUN_CHILD_H_
