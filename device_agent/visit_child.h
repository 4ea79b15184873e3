// The work of one measuring child: everything that happens in the same process as code that cannot be trusted.
//
// A child verifies the candidates it is given one after the other, times each briefly, and then races those that were
// verified (here or by the child before it). It tells the launcher each step before and after (visit_message.h), so
// that the launcher knows whom to blame when it falls silent. What to do about that is the launcher's (visit.h).
#ifndef HONE_DEVICE_AGENT_VISIT_CHILD_H_
#define HONE_DEVICE_AGENT_VISIT_CHILD_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "device_agent/cold_numbers.h"
#include "device_agent/device.h"
#include "device_agent/evidence.h"
#include "device_agent/visit_batch.h"

namespace hone::agent {

// A candidate that an earlier child verified and timed.
struct Verified {
  int candidate;
  int64_t calls;
  double median_seconds;
};

struct ChildTask {
  const VisitBatch* batch = nullptr;
  const Device* device = nullptr;
  int artifact_fd = -1;
  int channel = -1;                           // packets of VisitMessage to the launcher
  const char* inputs = nullptr;               // laid out by LayOut
  Evidence* evidence = nullptr;               // not for a building child
  const ColdNumbers* cold_numbers = nullptr;  // for a measuring child
  int64_t memory_limit = 0;                   // bytes of address space; 0 for none
  bool filters_calls = true;  // false: the system has no filter of system calls, as the tracker was told
  double deadline = std::numeric_limits<double>::infinity();  // of SecondsNow; what is not begun by then stays undone
  std::vector<int> to_verify;                                 // indices of candidates
  std::vector<Verified> verified;
};

// All run in a freshly forked child and never return.
// Runs the reference kernel once and shows its outputs.
[[noreturn]] void RunReferenceChild(const ChildTask& task);
// Loads the candidates to verify, one after the other, so that their code is built; tells of those that have none.
[[noreturn]] void RunBuildingChild(const ChildTask& task);
[[noreturn]] void RunMeasuringChild(const ChildTask& task);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_CHILD_H_
