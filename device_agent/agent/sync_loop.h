// SPDX-License-Identifier: Apache-2.0
// The agent's conversation with its tracker: one loop that states what the agent and its devices are and do, and does
// what the answer says. Every device has a worker of its own, which measures one lease after the other.
//
// Results are kept until the tracker acknowledges them, on the disk too (outbox.h). An agent that hears nothing for
// fence_after stops what it runs: by then the tracker has given the lease to another. Connection errors are waited out
// with a growing, jittered pause, for ever; only what no waiting mends ends the loop. A batch that brings an error is
// followed by the golden kernel (golden.h), which tells a trouble of the batch from one of the device. Start at
// SyncLoop::Run. Not here: measuring (the launcher), the device (device.h).
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

// Measures a batch on one device; the launcher in the agent, a fake in tests. Blocks; called by one thread at a time.
// Ends soon once a stop is requested, also when that was before the call.
using Measure = std::function<v1::BatchResult(const v1::Batch&, const std::stop_token&)>;

// One call of the tracker: blocks until the answer, and its deadline is its own affair. Ends soon, with kCancelled,
// once a stop is requested, also when that was before the call.
using Synchronize =
    std::function<absl::StatusOr<v1::SynchronizeResponse>(const v1::SynchronizeRequest&, const std::stop_token&)>;

struct AgentIdentity {
  std::string agent_id, boot_id, version;
};

// The device's check of itself, repeated while nothing is measured on it.
struct SelfCheck {
  std::function<v1::SelfTest()> run;
  absl::Duration every = absl::Minutes(10);
};

// The golden kernel, measured on the device in turns with batches, by the same thread.
struct GoldenCheck {
  // number: for GoldenCheck.number. Ends soon once a stop is requested. Empty: there is none for this device.
  std::function<v1::GoldenCheck(uint64_t number, const std::stop_token&)> run;
  absl::Duration every = absl::Minutes(1);  // at most so often between batches
};

struct ServedDevice {
  v1::DeviceState state;
  Measure measure;
  SelfCheck check;
  GoldenCheck golden;
};

class SyncLoop {
 public:
  // `devices`: at least one, of different device_ids. What is in the outbox is offered to the tracker first.
  SyncLoop(AgentIdentity identity, Synchronize synchronize, std::vector<ServedDevice> devices,
           std::optional<Outbox> outbox = std::nullopt);
  ~SyncLoop();

  // Runs until Stop; then says goodbye to the tracker once, if it can. An error means that going on is of no use:
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

  // A device and what it does. All but `served.measure` and `served.check` under mutex_.
  struct Worker {
    explicit Worker(ServedDevice device) : served(std::move(device)) {}
    bool busy() const { return running.has_value() || !queued.empty(); }
    bool Holds(const std::string& lease_id) const;

    ServedDevice served;
    absl::Time last_check, last_golden;
    bool golden_wanted = false;  // somebody waits for a check of it
    bool measured = false;       // a batch, since the last check
    uint64_t goldens = 0;        // so far
    std::deque<Visit> queued;
    std::optional<v1::LeaseReference> running;
    std::string barred;     // why the tracker gives it no work, as it said last
    std::stop_source drop;  // of what runs: its result is of no use any more
    std::thread thread;
  };

  absl::StatusOr<v1::SynchronizeResponse> Call(bool leaving);
  v1::SynchronizeRequest Request(bool leaving);
  void Handle(const v1::SynchronizeResponse& response);
  void NoteBarred(const v1::SynchronizeResponse& response);
  void Take(const v1::Lease& lease);
  void Cancel(const std::string& lease_id);
  void FenceLoop();
  void CheckDevices(absl::Time now);
  void Forget(Worker& worker);
  bool AnyBusy() const;
  void MeasureLoop(Worker& worker);
  bool GoldenDue(const Worker& worker) const;
  void RunGolden(Worker& worker, std::unique_lock<std::mutex>& lock);
  void RunVisit(Worker& worker, std::unique_lock<std::mutex>& lock);
  void Keep(const v1::LeaseResult& result);
  void Unkeep(const std::string& lease_id);
  void AwaitFirstGoldens();
  void Pause(absl::Duration duration, bool until_news);

  const AgentIdentity identity_;
  const Synchronize synchronize_;
  Random random_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  uint64_t epoch_ = 0, sequence_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::string, v1::LeaseResult> finished_;  // by lease id, until acknowledged
  std::mutex outbox_mutex_;                          // held while the disk works: never taken under mutex_
  std::optional<Outbox> outbox_;
  absl::Time sent_;                                 // the newest call
  absl::Time last_heard_ = absl::InfiniteFuture();  // when the tracker surely heard of us last
  absl::Duration fence_after_ = absl::InfiniteDuration();
  absl::Duration next_sync_ = absl::Seconds(1);
  std::stop_source call_;  // of the newest call
  bool held_ = false;      // a call is under way that the tracker may hold: what is finished meanwhile ends it
  bool news_ = false;      // something was finished since the last request
  std::thread fence_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_SYNC_LOOP_H_
