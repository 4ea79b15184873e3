// SPDX-License-Identifier: Apache-2.0
// The agent's conversation with its tracker. One loop reports the state of the agent and its devices and follows the
// answers. Each device has a worker thread, which measures one lease after the other.
//
// Results are kept until the tracker acknowledges them, on the disk too (outbox.h). An agent that hears nothing for
// fence_after cancels its measurements, because by then the tracker has given their leases to others. After connection
// errors the loop retries for ever, with a growing, jittered pause. Only errors that waiting cannot cure end it. After
// a batch with an error the worker measures the golden kernel (golden.h), which tells a failure of the batch from a
// failure of the device. Start at SyncLoop::Run. Not here: measuring (launcher_process.h), devices (devices/device.h).
#ifndef HONE_DEVICE_AGENT_AGENT_SYNC_LOOP_H_
#define HONE_DEVICE_AGENT_AGENT_SYNC_LOOP_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "device_agent/agent/outbox.h"
#include "hone/v1/agent.pb.h"

namespace hone::agent {

// Measures a batch on one device, by its launcher, or by a fake in tests. Blocks; one thread at a time calls it.
// Returns soon once a stop is requested, even if that happened before the call.
using Measure = std::function<v1::BatchResult(const v1::Batch&, const std::stop_token&)>;

// Sends one call to the tracker and blocks until the answer. It sets its own deadline. Returns kCancelled soon once a
// stop is requested, even if that happened before the call.
using Synchronize =
    std::function<absl::StatusOr<v1::SynchronizeResponse>(const v1::SynchronizeRequest&, const std::stop_token&)>;

struct AgentIdentity {
  std::string agent_id, boot_id, version;
};

// The device's self-test, repeated while the device is idle.
struct SelfCheck {
  std::function<v1::SelfTest()> run;
  absl::Duration interval = absl::Minutes(10);
};

// The golden kernel, measured on the device by the device's worker thread when no batch runs. It is measured at the
// start, after each self-test and each failed batch, when the tracker asks, and between batches.
struct GoldenCheck {
  // `number` becomes v1::GoldenCheck.number. Returns soon once a stop is requested. Empty: no golden kernel for this
  // device.
  std::function<v1::GoldenCheck(uint64_t number, const std::stop_token&)> run;
  absl::Duration interval = absl::Minutes(1);  // between batches: a check is due if the last one is so long ago
};

struct ServedDevice {
  v1::DeviceState state;
  Measure measure;
  SelfCheck check;
  GoldenCheck golden;
};

class SyncLoop {
 public:
  // `devices`: at least one, with distinct device_ids. Results in `outbox` are sent to the tracker first. It
  // starts the threads of all devices, which make their first golden checks; Run waits for these.
  SyncLoop(AgentIdentity identity, Synchronize synchronize, std::vector<ServedDevice> devices,
           std::optional<Outbox> outbox = std::nullopt);
  ~SyncLoop();

  // Runs until Stop, then tries once to tell the tracker that the agent leaves. The errors cannot be cured by waiting.
  // kAborted: another process registered under this name; kFailedPrecondition: the versions do not fit;
  // kUnauthenticated, kPermissionDenied, kInvalidArgument: the tracker refuses this agent.
  absl::Status Run();
  void Stop();  // from any thread

 private:
  struct Visit {
    v1::LeaseReference reference;
    v1::Receipt receipt;
    v1::Batch batch;
  };

  // A device and its state. mutex_ guards all but `served.measure` and `served.check`.
  struct Worker {
    explicit Worker(ServedDevice device) : served(std::move(device)) {}
    bool busy() const { return running.has_value() || !queued.empty(); }
    bool Holds(const std::string& lease_id) const;

    ServedDevice served;
    absl::Time last_check, last_golden_check;
    bool golden_due = false;     // a check is due as soon as the device is free
    bool measured = false;       // whether a batch was measured since the last check
    uint64_t golden_checks = 0;  // golden checks so far
    std::deque<Visit> queued;
    std::optional<v1::LeaseReference> running;
    std::string barred;     // why the tracker gives it no work, as last told; empty: it gives work
    std::stop_source stop;  // cancels `running`, whose result is not wanted any more
    std::thread thread;
  };

  absl::StatusOr<v1::SynchronizeResponse> Call(bool leaving);
  v1::SynchronizeRequest Request(bool leaving);
  void Handle(const v1::SynchronizeResponse& response);
  void LogNoWorkReasons(const v1::SynchronizeResponse& response);
  void Take(const v1::Lease& lease);
  void Cancel(const std::string& lease_id);
  void FenceLoop();
  void CheckDevices(absl::Time now);
  void Forget(Worker& worker);
  bool AnyBusy() const;
  void MeasureLoop(Worker& worker);
  bool IsGoldenCheckDue(const Worker& worker) const;
  void RunGoldenCheck(Worker& worker, std::unique_lock<std::mutex>& lock);
  void RunVisit(Worker& worker, std::unique_lock<std::mutex>& lock);
  void StoreResult(const v1::LeaseResult& result);
  void RemoveResult(const std::string& lease_id);
  void AwaitFirstGoldenChecks();
  void Pause(absl::Duration duration, bool until_new_result);

  const AgentIdentity identity_;
  const Synchronize synchronize_;
  Random random_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  uint64_t epoch_ = 0, sequence_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::string, v1::LeaseResult> finished_;  // by lease id, until acknowledged
  std::mutex outbox_mutex_;                          // held during disk writes, so it is never locked under mutex_
  std::optional<Outbox> outbox_;
  absl::Time sent_;                                 // when the newest call was sent
  absl::Time last_heard_ = absl::InfiniteFuture();  // when the newest answered call was sent
  absl::Duration fence_after_ = absl::InfiniteDuration();
  absl::Duration next_sync_ = absl::Seconds(1);
  std::stop_source call_;        // of the newest call
  bool poll_held_ = false;       // the tracker may be holding the call under way; a finished result cancels that call
  bool has_new_result_ = false;  // a measurement has finished since the last request
  std::thread fence_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_SYNC_LOOP_H_
