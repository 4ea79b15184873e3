// One visit: a batch measured by child processes, seen from the process that starts, watches and replaces them.
//
// A child that crashes, hangs or writes where it must not is one candidate's failure; the next child goes on with the
// others. Nothing a child says is believed unchecked. Must run in a process with one thread (it forks); Cancel comes
// through a file descriptor that becomes readable. Start at Visitor::Run.
#ifndef HONE_DEVICE_AGENT_VISIT_H_
#define HONE_DEVICE_AGENT_VISIT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "device_agent/cold_numbers.h"
#include "device_agent/device.h"
#include "device_agent/reference_cache.h"
#include "device_agent/visit_batch.h"
#include "device_agent/visit_child.h"

namespace hone::agent {

class Progress;

class Visitor {
 public:
  struct Options {
    int64_t memory_limit = 0;  // of one child, bytes of address space; 0 for none
    int64_t cache_bytes = 512ll << 20;
    bool filters_calls = true;  // false: the system has no filter of system calls, and children run without one
    double grace_seconds = 3;   // that a running kernel gets when the time of its visit is over
  };
  // `device` must outlive the visitor.
  Visitor(const Device& device, const Options& options)
      : device_(device), options_(options), cache_(options.cache_bytes) {}

  // Measures the batch; never fails as a call: see VisitResult.error. Returns early with error "cancelled" when
  // `cancel_fd` (or -1) becomes readable.
  VisitResult Run(const VisitBatch& batch, int cancel_fd);

 private:
  absl::StatusOr<const ReferenceData*> ComputeReference(ChildTask task, int cancel_fd);
  void BuildAhead(ChildTask task, Progress& progress, int cancel_fd);

  const Device& device_;
  const Options options_;
  ReferenceCache cache_;
  ColdNumbers cold_numbers_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_H_
