// SPDX-License-Identifier: Apache-2.0
// Visits: each a batch measured by child processes, seen from the process that starts, watches and replaces them.
//
// Children are started ahead where there is time before the next visit, since a driver takes a second to start. A child
// that crashes, hangs or writes where it must not is one candidate's failure; the next child goes on with the others.
// Nothing a child says is believed unchecked. Must run in a process with one thread (it forks); Cancel comes through a
// file descriptor that becomes readable. Start at VisitRunner::Run.
#ifndef HONE_DEVICE_AGENT_LAUNCHER_VISIT_RUNNER_H_
#define HONE_DEVICE_AGENT_LAUNCHER_VISIT_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "device_agent/devices/cold_numbers.h"
#include "device_agent/devices/device.h"
#include "device_agent/launcher/child_process.h"
#include "device_agent/launcher/reference_cache.h"
#include "device_agent/sandbox/system_calls.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/memory_file.h"
#include "device_agent/visit/task.h"

namespace hone::agent {

class VisitRunner {
 public:
  struct Options {
    int64_t memory_limit = 0;  // of one child, bytes of address space; 0 for none
    int64_t cache_bytes = 512ll << 20;
    CallFilter filter = CallFilter::kListener;  // of children; kNone: they run without one
    double grace_seconds = 3;                   // that a running kernel gets when the time of its visit is over
    std::vector<int> cpus;                      // of this process and its children; empty: any
  };
  // `device` must outlive the visitor.
  VisitRunner(const Device& device, const Options& options)
      : device_(device), options_(options), cache_(options.cache_bytes) {}

  // Measures the batch; never fails as a call: see VisitResult.error. Returns early with error "cancelled" when
  // `cancel_fd` (or -1) becomes readable.
  VisitResult Run(const VisitBatch& batch, int cancel_fd);

  // Starts as many children as the last visit began with, two at most, and waits until their devices are started. Not
  // while anybody measures on this host. Those that the next visit does not need end with it. False: one did not start.
  bool StartAhead();

 private:
  struct Course;
  absl::StatusOr<VisitResult> Follow(Course& course);
  absl::StatusOr<const ReferenceData*> ComputeReference(Course& course);
  bool NeedsBuilding(const VisitBatch& batch, size_t candidates) const;
  bool BuildAhead(Course& course, const MemoryFile& inputs);
  // Has a child work on the task: one that was started ahead, or a new one.
  absl::StatusOr<ChildProcess> Begin(Course& course, const MemoryFile& inputs, const VisitTask& task);
  absl::StatusOr<ChildProcess> NextChild(int threads);
  absl::StatusOr<ChildProcess> Fork(int threads) const;

  const Device& device_;
  const Options options_;
  ReferenceCache cache_;
  ColdNumbers cold_numbers_;
  double load_seconds_ = 0;  // of a candidate, in the last visit that measured what nobody had built ahead
  size_t begun_ = 0;         // children of the last visit
  int threads_ = 1;          // of its batch
  std::vector<ChildProcess> ahead_;
  int ahead_threads_ = 0;  // for which they were started
  int ahead_changes_ = 0;  // of the cold numbers that they have
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_VISIT_RUNNER_H_
