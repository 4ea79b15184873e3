// SPDX-License-Identifier: Apache-2.0
// The shell around the farm: its lock, the clock, what must be stored, and calls that wait. What gRPC's threads call.
//
// Every method is safe from any thread and returns at once; the answer comes through `done`, on any thread. The lock is
// held for moments only: nothing is read from or written to a disk under it. Results are in the records before the farm
// takes them, and a change of a job is stored before anyone hears of it (group_commit.h): kill -9 at any moment loses
// nothing that was acknowledged. A call that waits holds no thread, and an event wakes only those whom it concerns.
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

// What time it is. Leases go by the steady one, which no step of the system's clock moves; what people give and are
// told goes by the wall's, which also goes on while the machine sleeps.
struct Clocks {
  std::function<absl::Time()> steady = SteadyNow, wall = absl::Now;
};

class Shell {
 public:
  // The store must outlive the shell.
  static absl::StatusOr<std::unique_ptr<Shell>> Start(FarmOptions options, FarmState state, records::Store* store,
                                                      Clocks clocks = {});
  ~Shell();  // every call has its answer when it returns
  // Ends all waiting calls with kUnavailable and lets no new one wait.
  void Stop();

  // A request must live until `done` is called. Waiting ends early when `present` says that the caller is gone.
  void Synchronize(const v1::SynchronizeRequest& request, Present present, Done<v1::SynchronizeResponse> done);
  void LeaseJob(const v1::LeaseJobRequest& request, Present present, Done<v1::LeaseJobResponse> done);
  void ReportProgress(const v1::ReportProgressRequest& request, Done<v1::ReportProgressResponse> done);
  void SubmitBatch(const v1::SubmitBatchRequest& request, Done<v1::SubmitBatchResponse> done);
  void WaitBatch(const v1::WaitBatchRequest& request, Present present, Done<v1::WaitBatchResponse> done);
  void CompleteJob(const v1::CompleteJobRequest& request, Done<v1::CompleteJobResponse> done);
  // Returns, as CancelJob does, whether anything changed: not where there is such a job already, or it has ended.
  bool SubmitJob(const v1::JobSpec& spec, Done<v1::Job> done);
  void GetJob(const std::string& job_id, Done<v1::Job> done);
  void GetJobLines(const std::vector<std::string>& ids, Done<std::vector<v1::Job>> done);  // as Farm has them
  void ListJobs(const v1::ListJobsRequest& request, Done<v1::ListJobsResponse> done);
  // who: so many calls of one identity wait (quotas.h); one more ends the one whose time is up first.
  void WatchJob(const v1::WatchJobRequest& request, const std::string& who, Present present,
                Done<v1::WatchJobResponse> done);
  bool CancelJob(const std::string& job_id, Done<v1::Job> done);
  void Drain(const std::string& agent_id, const std::string& reason, Done<v1::DrainResponse> done);
  void Undrain(const std::string& agent_id, Done<v1::UndrainResponse> done);
  // Ended jobs whose end is on the disk and to be told to somebody (JobSpec.notify_url), as JobBook::LineOf has them;
  // and what came of an attempt.
  std::vector<v1::Job> JobsToTell();
  void TakeNotice(const std::string& job_id, const v1::JobNotice& notice);
  v1::ListDevicesResponse ListDevices(const v1::ListDevicesRequest& request);
  v1::GetFarmResponse Counters();
  Histogram CommitTimes() const { return commit_.Times(); }  // seconds
  absl::Time started() const { return started_; }
  // For the simulation's invariants: looks at the farm as it is between two calls.
  void Look(const std::function<void(const Farm&, absl::Time now)>& look);

 private:
  class Turn;
  using HeldAgent = HeldCall<v1::SynchronizeRequest, v1::SynchronizeResponse>;
  using HeldTuner = HeldCall<v1::LeaseJobRequest, v1::LeaseJobResponse>;
  using HeldBatchWait = HeldCall<v1::WaitBatchRequest, v1::WaitBatchResponse>;
  using HeldWatch = HeldCall<v1::WatchJobRequest, v1::WatchJobResponse>;

  Shell(FarmOptions options, FarmState state, records::Store* store, Clocks clocks);
  // By the steady clock, from the time on the wall when the tracker started.
  absl::Time Now() const { return started_ + (clocks_.steady() - started_steady_); }
  void TickLoop();
  void Tick(Turn& turn);

  // The second half of Synchronize, when the results in the request are stored, or cannot be.
  // stored: nullopt where there was nothing to store.
  void TakeCall(const v1::SynchronizeRequest& request, const Present& present,
                const Done<v1::SynchronizeResponse>& done, const std::optional<absl::Status>& stored);
  template <typename Response>
  void SetDrained(const std::string& agent_id, std::optional<std::string> reason, Done<Response> done);

  // What the end of a turn does: hands over what changed, and answers waiting calls whom it concerns.
  GroupCommit::Changes TakeChanges(Turn& turn);
  void DealWork(Turn& turn);
  void DealJobs(Turn& turn);
  bool Offer(Turn& turn, const std::string& agent_id);  // whether it ended the call
  void AnswerBatchWaits(Turn& turn, const std::string& job_id);
  void AnswerWatches(Turn& turn, const std::string& job_id);
  void EndFirstWatchOf(Turn& turn, const std::string& who);
  // Calls whose time is up; and, since that takes longer to see, those whose caller has gone.
  void EndOverdue(Turn& turn, bool look_for_callers);
  void EndOverdueAgents(Turn& turn);
  absl::StatusOr<v1::WatchJobResponse> Watched(const v1::WatchJobRequest& request);
  bool EndIsNews(const v1::Job& job) const;

  std::mutex mutex_;
  std::condition_variable stopped_;  // for the ticker
  bool stopping_ = false;
  const Clocks clocks_;
  const absl::Time started_ = clocks_.wall(), started_steady_ = clocks_.steady();
  const std::string farm_id_;
  Farm farm_;
  std::set<std::string> specs_kept_;                        // jobs whose specification was handed over to be stored
  std::set<std::string> ends_on_their_way_;                 // jobs that ended, which may not be on the disk yet
  std::multiset<std::string> storing_;                      // agents whose results are on their way to the disk
  std::map<std::string, HeldAgent> agents_;                 // by agent
  std::multimap<absl::Time, std::string> agent_deadlines_;  // of calls that are, or were, held
  absl::Time agents_looked_for_ = absl::InfinitePast();     // when it was seen which of them have gone
  std::list<HeldTuner> tuners_;                             // for a job, in the order they came
  std::multimap<std::string, HeldBatchWait> batch_waits_;   // by job
  std::multimap<std::string, HeldWatch> watches_;           // by job
  std::thread ticker_;
  GroupCommit commit_;  // last, so that what it tells at its end finds the rest
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_SHELL_H_
