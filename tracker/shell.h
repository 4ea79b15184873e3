// SPDX-License-Identifier: Apache-2.0
// The shell around Farm adds what the pure state machine lacks: the lock, the clocks, storage, and held calls. The gRPC
// and HTTP threads call it.
//
// Every method is safe from any thread and returns at once; the answer comes through `done`, on any thread. No disk is
// read or written under the lock, so the lock is held only briefly. Results are stored before the farm takes them, and
// a change of a job is stored before an answer reports it (group_commit.h). A kill -9 at any moment therefore loses
// nothing that was acknowledged. A held call holds no thread, and an event wakes only the calls that it concerns. Start
// at Shell::Start and the private class Turn (shell.cc).
#ifndef HONE_TRACKER_SHELL_H_
#define HONE_TRACKER_SHELL_H_

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "records/store.h"
#include "tracker/farm_state.h"
#include "tracker/group_commit.h"
#include "tracker/held_call.h"
#include "tracker/queue/farm.h"

namespace hone::tracker {

// The clocks. Leases and limits use the steady clock, because setting the system's clock does not move it. Times that
// users give and see use the wall clock, which also advances while the machine sleeps.
struct Clocks {
  std::function<absl::Time()> steady = SteadyNow, wall = absl::Now;
};

class Shell {
 public:
  // Restores the stored state and starts the thread that ticks. The store must outlive the shell.
  static absl::StatusOr<std::unique_ptr<Shell>> Start(FarmOptions options, FarmState state, records::Store* store,
                                                      Clocks clocks = {});
  ~Shell();  // as Stop; when it returns, every call has its answer
  // Ends all held calls with kUnavailable. Later calls are never held. One that would have to wait gets kUnavailable,
  // or from WatchJob the job as it is.
  void Stop();

  // The RPCs of the protocol. A request must live until `done` is called. A held call ends early when `present` returns
  // false.
  void Synchronize(const v1::SynchronizeRequest& request, Present present, Done<v1::SynchronizeResponse> done);
  void LeaseJob(const v1::LeaseJobRequest& request, Present present, Done<v1::LeaseJobResponse> done);
  void ReportProgress(const v1::ReportProgressRequest& request, Done<v1::ReportProgressResponse> done);
  void SubmitBatch(const v1::SubmitBatchRequest& request, Done<v1::SubmitBatchResponse> done);
  void WaitBatch(const v1::WaitBatchRequest& request, Present present, Done<v1::WaitBatchResponse> done);
  void CompleteJob(const v1::CompleteJobRequest& request, Done<v1::CompleteJobResponse> done);
  // Returns whether a job was added: false where the request failed or its job is already known.
  bool SubmitJob(const v1::JobSpec& spec, Done<v1::Job> done);
  void GetJob(const std::string& job_id, Done<v1::Job> done);
  void GetJobSummaries(const std::vector<std::string>& ids, Done<std::vector<v1::Job>> done);  // as Farm's
  void ListJobs(const v1::ListJobsRequest& request, Done<v1::ListJobsResponse> done);
  // who: the identity of the caller. A call beyond Quotas::watches ends the caller's held call with the first deadline.
  void WatchJob(const v1::WatchJobRequest& request, const std::string& who, Present present,
                Done<v1::WatchJobResponse> done);
  // Returns whether the job was cancelled: false where it is unknown or had ended.
  bool CancelJob(const std::string& job_id, Done<v1::Job> done);
  // Fleet watches (Farm). submitter: only their watch may be changed; nullopt: every watch.
  void AddWatch(const v1::FleetWatchSpec& spec, Done<v1::FleetWatch> done);
  void RunWatch(const std::string& name, const std::optional<std::string>& submitter, Done<v1::FleetWatch> done);
  void AcceptNight(const std::string& name, const std::string& device, const std::optional<std::string>& submitter,
                   Done<v1::FleetWatch> done);
  void RemoveWatch(const std::string& name, const std::optional<std::string>& submitter,
                   Done<v1::RemoveFleetWatchResponse> done);
  void GetWatch(const std::string& name, Done<v1::FleetWatch> done);
  void ListWatches(Done<v1::ListFleetWatchesResponse> done);
  // Notices about nights that are stored.
  std::vector<NightNotice> NightsToNotify();
  void RecordNotice(const NightNotice& sent, const v1::JobNotice& notice);
  void Drain(const std::string& agent_id, const std::string& reason, Done<v1::DrainResponse> done);
  void Undrain(const std::string& agent_id, Done<v1::UndrainResponse> done);
  // Ended jobs whose end is stored and whose notice (JobSpec.notify_url) is still to be sent, as JobQueue::SummaryOf.
  std::vector<v1::Job> JobsToNotify();
  // Stores the outcome of an attempt to send a notice.
  void RecordNotice(const std::string& job_id, const v1::JobNotice& notice);
  std::vector<std::string> TakeUnneededPackages();  // as Farm's
  v1::ListDevicesResponse ListDevices(const v1::ListDevicesRequest& request);
  v1::ListTunersResponse ListTuners();
  v1::GetFarmResponse Counters();
  Histogram CommitTimes() const { return commit_.Times(); }  // seconds
  absl::Time started() const { return started_; }
  // Calls `use` with the farm under the lock, between two other calls. `use` must not wait. For the simulator's
  // invariants, and for pages that show the farm.
  void WithFarm(const std::function<void(const Farm&, absl::Time now)>& use);

 private:
  class Turn;
  using HeldAgent = HeldCall<v1::SynchronizeRequest, v1::SynchronizeResponse>;
  using HeldTuner = HeldCall<v1::LeaseJobRequest, v1::LeaseJobResponse>;
  using HeldBatchWait = HeldCall<v1::WaitBatchRequest, v1::WaitBatchResponse>;
  using HeldWatch = HeldCall<v1::WatchJobRequest, v1::WatchJobResponse>;

  Shell(FarmOptions options, FarmState state, records::Store* store, Clocks clocks);
  // The queue's time: the wall time at the start, plus the steady time since then.
  absl::Time Now() const { return started_ + (clocks_.steady() - started_steady_); }
  void TickLoop();
  void Tick(Turn& turn);

  // The second half of Synchronize, after the attempt to store the results in the request. stored: the outcome of that
  // attempt; nullopt: there were no results.
  void TakeCall(const v1::SynchronizeRequest& request, const Present& present,
                const Done<v1::SynchronizeResponse>& done, const std::optional<absl::Status>& stored);
  template <typename Response>
  void SetDrained(const std::string& agent_id, std::optional<std::string> reason, Done<Response> done);

  // The end of a turn: hands changes over to be stored, and answers the held calls that they concern.
  GroupCommit::Changes TakeChanges(Turn& turn);
  void OfferNewWork(Turn& turn);
  void LeaseWaitingJobs(Turn& turn);
  bool Offer(Turn& turn, const std::string& agent_id);  // returns whether the agent's held call was answered
  void AnswerBatchWaits(Turn& turn, const std::string& job_id);
  void AnswerWatches(Turn& turn, const std::string& job_id);
  void EndFirstWatchOf(Turn& turn, const std::string& who);
  // Ends held calls past their deadline. With look_for_callers also those whose caller is gone, which takes longer.
  void EndOverdue(Turn& turn, bool look_for_callers);
  void EndOverdueAgents(Turn& turn);
  absl::StatusOr<v1::WatchJobResponse> Watched(const v1::WatchJobRequest& request);
  bool IsEndReportable(const v1::Job& job) const;

  std::mutex mutex_;
  std::condition_variable stopped_;  // for the ticker
  bool stopping_ = false;
  const Clocks clocks_;
  const absl::Time started_ = clocks_.wall(), started_steady_ = clocks_.steady();
  const std::string farm_id_;
  Farm farm_;
  std::set<std::string> specs_kept_;                        // jobs whose specification was handed over to be stored
  std::set<std::string> unstored_ends_;                     // ended jobs whose end may not be stored yet
  std::set<storage::WatchKey> unstored_nights_;             // watches and devices whose nights may not be stored yet
  std::multiset<std::string> storing_;                      // agents whose results are being stored
  std::map<std::string, HeldAgent> agents_;                 // held calls of agents, by agent id
  std::multimap<absl::Time, std::string> agent_deadlines_;  // deadlines of calls in agents_, also of answered ones
  absl::Time agents_checked_ = absl::InfinitePast();        // when Present was last asked for the calls in agents_
  std::list<HeldTuner> tuners_;                             // tuners that wait for a job, first come first
  std::multimap<std::string, HeldBatchWait> batch_waits_;   // by job
  std::multimap<std::string, HeldWatch> watches_;           // by job
  std::thread ticker_;
  GroupCommit commit_;  // the last member: it is destroyed first, and its last callbacks still use the others
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_SHELL_H_
