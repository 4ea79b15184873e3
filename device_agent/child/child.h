// SPDX-License-Identifier: Apache-2.0
// The state of a child process of the launcher, in which untrusted kernels run: its channel, its confinement, the
// started device, and later its task and a session on the device. run_child.h uses it; launcher/child_process.h is the
// other end.
#ifndef HONE_DEVICE_AGENT_CHILD_CHILD_H_
#define HONE_DEVICE_AGENT_CHILD_CHILD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/memory_file.h"
#include "device_agent/child/run_child.h"
#include "device_agent/devices/device.h"
#include "device_agent/sandbox/system_calls.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/child_channel.h"
#include "device_agent/visit/guarded_memory.h"
#include "device_agent/visit/result_memory.h"
#include "device_agent/visit/task.h"

namespace hone::agent {

// Must live until the process ends, because the signal handlers use its members.
class Child {
 public:
  // channel: the socket to the launcher. `origin` must outlive the child.
  Child(const ChildOrigin& origin, int channel) : origin_(origin), channel_(channel), launcher_channel_(channel) {}

  // Confines this process, with the calls of that setup until EndSetup. Call it once, before anything else. The error
  // says why nothing can be measured.
  absl::Status Confine(SetupCalls setup);
  // Ends the phase of the calls of the setup. Untrusted code runs only after it.
  absl::Status EndSetup();
  // Waits for the packet of the task and returns the files that came with it. Ends the process if the launcher closes
  // the channel without a task.
  std::vector<MemoryFile> ReceiveTaskFiles() const;

  // For kernels: confines this process and starts its device, which needs no batch. Call it once.
  absl::Status Start();
  // For kernels: waits for the task and opens a session for it. Call it once, after Start. The error says why this
  // batch cannot be measured.
  absl::Status Open();

  ChildChannel& launcher_channel() { return launcher_channel_; }
  const Device& device() const { return *origin_.device; }
  int64_t memory_limit() const { return origin_.memory_limit; }  // bytes; 0 for none
  // Valid after Open.
  Session& session() { return *session_; }
  const VisitTask& task() const { return task_; }
  const VisitBatch& batch() const { return batch_; }
  ResultMemory& result_memory() { return *result_memory_; }  // not in a building child, which has none

  // Copies the outputs of a kernel that has run, and the guard zones of its buffers, into the result memory.
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

// Classifies an error of a kernel. Code that is missing or invalid is a compile error. A lack of memory is kLostDevice,
// which blames no kernel, because other processes may hold the memory. kOutOfRange is a write out of bounds, and
// kDeadlineExceeded a call that took too long. Any other error is a crash.
VisitFailure FailureFromStatus(const absl::Status& status);
// Whether the session can be used after that error of Session::Load.
bool CanReuseSession(const absl::Status& status);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_CHILD_H_
