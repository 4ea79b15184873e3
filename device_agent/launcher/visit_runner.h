// SPDX-License-Identifier: Apache-2.0
// Runs visits: measures each batch by child processes, which it starts, supervises and replaces.
//
// Children are started before the next batch arrives, because some drivers take a second to start. A child that
// crashes, hangs or writes out of bounds is the failure of one candidate; the next child continues with the other
// candidates. The process must have one thread, because this class forks. Start at VisitRunner::Run.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_VISIT_RUNNER_H_
#define HONE_DEVICE_AGENT_LAUNCHER_VISIT_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/memory_file.h"
#include "device_agent/devices/cold_numbers.h"
#include "device_agent/devices/device.h"
#include "device_agent/launcher/child_process.h"
#include "device_agent/launcher/reference_cache.h"
#include "device_agent/sandbox/system_calls.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/task.h"

namespace hone::agent {

class VisitRunner {
 public:
  struct Options {
    int64_t memory_limit = 0;  // bytes of address space of one child; 0: no limit
    int64_t cache_bytes = 512ll << 20;
    CallFilter filter = CallFilter::kListener;  // for children; kNone: they run even if they get no filter
    double grace_seconds = 3;                   // for a kernel that runs when the time of its visit is over
    std::vector<int> cpus;                      // for this process and its children; empty: any
  };
  // `device` must outlive the visitor.
  VisitRunner(const Device& device, const Options& options)
      : device_(device), options_(options), cache_(options.cache_bytes) {}

  // Measures the batch. All failures are in VisitResult.error. Returns early with error "cancelled" when `cancel_fd`
  // (or -1: never) becomes readable.
  VisitResult Run(const VisitBatch& batch, int cancel_fd);

  // Ends the children that were started ahead, for work that is not this class's.
  void EndPrestartedChildren() { prestarted_.clear(); }

  // Starts as many children as the last visit used, two at most, and waits until their devices are started. Must not
  // run while another process measures on this host. The next visit ends those that it does not need. False: a forked
  // child did not start its device; the others are kept. A child that cannot be forked is left out.
  bool PrestartChildren();

 private:
  struct VisitState;
  absl::StatusOr<VisitResult> Supervise(VisitState& state);
  absl::StatusOr<const ReferenceData*> ComputeReference(VisitState& state);
  bool NeedsBuilding(const VisitBatch& batch, size_t candidates) const;
  bool PrebuildKernels(VisitState& state, const MemoryFile& inputs);
  // Hands the task to a child that was started ahead, or to a new one.
  absl::StatusOr<ChildProcess> Begin(VisitState& state, const MemoryFile& inputs, const VisitTask& task);
  absl::StatusOr<ChildProcess> NextChild(int threads);
  absl::StatusOr<ChildProcess> Fork(int threads) const;

  const Device& device_;
  const Options options_;
  ReferenceCache cache_;
  ColdNumbers cold_numbers_;
  double load_seconds_ = 0;  // to load a candidate, median of the last visit without building children
  size_t begun_ = 0;         // children that the last visit gave work
  int threads_ = 1;          // of the last visit's batch
  std::vector<ChildProcess> prestarted_;
  int prestarted_threads_ = 0;     // the threads that the children in prestarted_ were started for
  int prestarted_generation_ = 0;  // cold_numbers_.generation() when they were started
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_VISIT_RUNNER_H_
