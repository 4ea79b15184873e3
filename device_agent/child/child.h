// SPDX-License-Identifier: Apache-2.0
// A process of a visit in which code runs that cannot be trusted: confined, with a device that is started, and then
// with a session of it and a task. What it does with them is told in run_child.h.
#ifndef HONE_DEVICE_AGENT_CHILD_CHILD_H_
#define HONE_DEVICE_AGENT_CHILD_CHILD_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "device_agent/child/run_child.h"
#include "device_agent/devices/device.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/child_channel.h"
#include "device_agent/visit/guarded_memory.h"
#include "device_agent/visit/memory_file.h"
#include "device_agent/visit/result_memory.h"
#include "device_agent/visit/task.h"

namespace hone::agent {

// Lives until the process ends: faults are told with what it holds.
class Child {
 public:
  // channel: to the launcher. `origin` must outlive it.
  Child(const ChildOrigin& origin, int channel) : origin_(origin), channel_(channel), launcher_channel_(channel) {}

  // Confines itself and starts its device: all that can be done before it knows what for. Once; the error says why
  // nothing can be measured.
  absl::Status Start();
  // Waits for its task and opens a session for it; without a task the process ends. Once, after Start; the error says
  // why this batch cannot be measured.
  absl::Status Open();

  ChildChannel& launcher_channel() { return launcher_channel_; }
  const Device& device() const { return *origin_.device; }
  int64_t memory_limit() const { return origin_.memory_limit; }  // bytes; 0 for none
  // After Open.
  Session& session() { return *session_; }
  const VisitTask& task() const { return task_; }
  const VisitBatch& batch() const { return batch_; }
  ResultMemory& result_memory() { return *result_memory_; }  // not of a building child

  // Its outputs and what lies around them, of a kernel that has run.
  absl::Status StoreResults(LoadedKernel& kernel);

 private:
  absl::Status TakeTask();

  const ChildOrigin& origin_;
  const int channel_;
  int listener_ = -1;
  bool filtered_ = false;
  RegionTable regions_;
  ChildChannel launcher_channel_;
  VisitTask task_;
  VisitBatch batch_;
  MemoryFile artifact_file_;
  Mapping artifact_, inputs_;
  std::optional<ResultMemory> result_memory_;
  std::unique_ptr<StartedDevice> device_;
  std::unique_ptr<Session> session_;
};

// What an error of a kernel is: what the artifact lacks is the compiler's fault, that there is no memory nobody's, as
// others may have it; the rest happened while running.
VisitFailure FailureFromStatus(const absl::Status& status);
// Whether the session lives on after such an error of Load.
bool SessionSurvives(const absl::Status& status);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_CHILD_H_
