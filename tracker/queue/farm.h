// SPDX-License-Identifier: Apache-2.0
// The tracker's queue: jobs, batches and devices joined into one state machine that answers every call of the protocol.
//
// Pure state: no threads, no input or output, no clock. Every call takes `now`; should it ever go back, the last one
// counts. The gRPC shell (tracker/shell.h) serializes the calls, stores what must survive, and parks long polls; the
// simulator in tests/farm drives the same class with thousands of fake agents. Start at Synchronize. Not thread-safe.
//
// Four kinds of trouble are told apart (docs/TROUBLE.md): a candidate's is its outcome; a batch's is tried elsewhere
// (FailOn); a device's counts against it (health.h); the tracker's own, a standstill or a full disk, is nobody's: every
// clock waits with it (Forward, SetTrouble).
#ifndef HONE_TRACKER_QUEUE_FARM_H_
#define HONE_TRACKER_QUEUE_FARM_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/tuner.pb.h"
#include "tracker/queue/batches.h"
#include "tracker/queue/devices.h"
#include "tracker/queue/draw_id.h"
#include "tracker/queue/histogram.h"
#include "tracker/queue/jobs.h"
#include "tracker/queue/limits.h"

namespace hone::tracker {

class Farm {
 public:
  // incarnation: which start of the farm this is: at least 1, and greater than that of any before, so that what it
  // gives out is told from what an earlier one gave out.
  // receipt_key: a secret of the farm, the same for as long as it exists (receipt.h).
  Farm(FarmOptions options, uint64_t incarnation, const DrawId& draw_id, std::string receipt_key);

  // What was stored, at start, before any other call.
  void Restore(std::vector<v1::Job> jobs, const std::vector<std::pair<std::string, std::string>>& drained,
               std::map<std::string, v1::HealthRecord> health = {});

  // --- agents -------------------------------------------------------------------------------------------------------
  // Results in the request that Synchronize would accept. The caller makes them durable and then calls Synchronize;
  // what it cannot make durable it hands to KeepWaiting, and the agent sends it again.
  std::vector<Recordable> Acceptable(const v1::SynchronizeRequest& request, absl::Time now);
  // The request without its results, whose leases are not late from now on.
  v1::SynchronizeRequest KeepWaiting(v1::SynchronizeRequest request);

  struct Answer {
    v1::SynchronizeResponse response;
    bool news = false;  // false: the response says nothing, and the call may be held for `hold`
    absl::Duration hold = absl::ZeroDuration();
  };
  absl::StatusOr<Answer> Synchronize(const v1::SynchronizeRequest& request, absl::Time now);
  // The job whose work a live lease is; "" for any other.
  std::string JobOfLease(const std::string& lease_id) const;
  // The agent's call is open, and will be answered as soon as its results are stored: it is not silent.
  void Hear(const std::string& agent_id, absl::Time now);
  // An agent to make an Offer to, among those whose calls are `held`: one with an idle device for a piece of work that
  // was queued lately. It may get another piece, whose turn it is; then this one is asked about again. Where the call
  // stays held, PassBy. nullopt: that was all.
  std::optional<std::string> NextConcerned(const std::function<bool(const std::string&)>& held, absl::Time now);
  void PassBy() { batches_.PassBy(); }
  // Something to say to an agent whose call is held back? nullopt: hold on. kAborted: a newer call overtook it.
  absl::StatusOr<std::optional<v1::SynchronizeResponse>> Offer(const v1::SynchronizeRequest& held, absl::Time now);

  // --- tuners -------------------------------------------------------------------------------------------------------
  absl::StatusOr<v1::LeaseJobResponse> LeaseJob(const v1::LeaseJobRequest& request, absl::Time now);  // may be empty
  absl::StatusOr<v1::ReportProgressResponse> ReportProgress(const v1::ReportProgressRequest& request, absl::Time now);
  absl::StatusOr<v1::SubmitBatchResponse> SubmitBatch(v1::SubmitBatchRequest request, absl::Time now);
  // Without `finished` and not `cancelled`: hold on.
  absl::StatusOr<v1::WaitBatchResponse> WaitBatch(const v1::WaitBatchRequest& request, absl::Time now);
  absl::Status CompleteJob(const v1::CompleteJobRequest& request, absl::Time now);

  // --- clients and operators ----------------------------------------------------------------------------------------
  absl::StatusOr<v1::Job> SubmitJob(const v1::JobSpec& spec, absl::Time now);
  absl::StatusOr<v1::Job> GetJob(const std::string& job_id, absl::Time now) const;
  // As JobBook::LineOf has them; those that there are.
  std::vector<v1::Job> GetJobLines(const std::vector<std::string>& ids, absl::Time now) const;
  std::vector<v1::Job> ListJobs(const v1::ListJobsRequest& request, absl::Time now);
  absl::StatusOr<v1::WatchJobResponse> WatchJob(const v1::WatchJobRequest& request, absl::Time now) const;
  absl::StatusOr<v1::Job> CancelJob(const std::string& job_id, absl::Time now);
  void TakeNotice(const std::string& job_id, const v1::JobNotice& notice) { jobs_.TakeNotice(job_id, notice); }
  std::vector<v1::Device> ListDevices(const v1::ListDevicesRequest& request, absl::Time now);
  // Why nothing can be stored now; "" when it can. While there is such trouble, no work is given out.
  void SetTrouble(const std::string& why) { trouble_ = why; }
  const std::string& trouble() const { return trouble_; }
  // kUnavailable while there is trouble. Calls of others that would change what is stored ask it before they do;
  // before Drain and Undrain the shell does.
  absl::Status Storable() const;
  void Drain(const std::string& agent_id, const std::string& reason) { devices_.Drain(agent_id, reason); }
  void Undrain(const std::string& agent_id) { devices_.Undrain(agent_id); }
  v1::GetFarmResponse Counters(absl::Time now) const;
  // Since the start: seconds from a batch's submission until a device had its first piece; candidates with an accepted
  // outcome, by kind, those that were timed under FAILURE_KIND_UNSPECIFIED.
  const Histogram& lease_waits() const { return lease_waits_; }
  const std::map<v1::FailureKind, int64_t>& outcomes() const { return outcomes_; }

  // --- the shell ----------------------------------------------------------------------------------------------------
  // Lets time pass: silent agents and tuners, overdue leases. To be called about twice a second.
  void Tick(absl::Time now);
  // By how much the clock on the wall is ahead of `now`, which goes by one that nobody sets. What people give and are
  // told is by the wall's, and what is stored of jobs.
  void SetWallAhead(absl::Duration ahead) { jobs_.SetWallAhead(ahead); }
  absl::Time OnTheWall(absl::Time time) const { return time + jobs_.wall_ahead(); }
  // How long the tracker did not run, all in all: no clock of anybody's did.
  absl::Duration stood_still() const { return stood_still_; }
  std::vector<const v1::Job*> TakeChangedJobs() { return jobs_.TakeChanged(); }
  // Ids of jobs of which there is news for who watches them.
  std::set<std::string> TakeJobNews() { return jobs_.TakeNews(); }
  // Ids of jobs that ended long ago and are there no more.
  std::vector<std::string> TakeForgottenJobs() { return jobs_.TakeForgotten(); }
  std::vector<Recordable> TakeGivenUp();
  std::map<std::string, v1::HealthRecord> TakeChangedHealth() { return devices_.TakeChangedHealth(); }

  // For the simulator's invariants.
  const BatchQueue& batches() const { return batches_; }
  const DeviceRegistry& devices() const { return devices_; }
  const JobBook& jobs() const { return jobs_; }

 private:
  absl::Time Forward(absl::Time now);
  const BatchQueue::Lease* LiveLease(const Agent& agent, const v1::LeaseReference& reference) const;
  v1::BatchResult Completed(const Agent& agent, const BatchQueue::Lease& lease, const v1::BatchResult& answer) const;
  void TakeResults(Agent& agent, const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response,
                   absl::Time now);
  void TakeResult(Agent& agent, const BatchQueue::Lease& lease, const v1::BatchResult& result, absl::Time now);
  void ReturnLeases(Agent& agent, const v1::SynchronizeRequest& request, absl::Time now);
  void CompareLeases(Agent& agent, const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response);
  void LeaseWork(Agent& agent, v1::SynchronizeResponse& response, absl::Time now);
  void AddLease(const BatchQueue::Lease& lease, v1::SynchronizeResponse& response) const;
  void FillTimes(Agent& agent, v1::SynchronizeResponse& response);
  absl::Duration Hold(const Agent& agent) const;
  void CountOutcomes(const v1::BatchResult& result);
  // Ends the lease; whoever held it is free.
  void FreeDevice(const BatchQueue::Lease& lease);
  void LoseLease(const std::string& lease_id, const std::string& why, absl::Time now);
  void LoseOrphans(Agent& agent, absl::Time now);
  void DropReleasedJobs();
  bool CanTake(const Agent& agent, const Device& device, const v1::Batch& batch, const Avoid& avoid,
               absl::Time now) const;
  bool AnotherCouldTake(const v1::Batch& batch, const Avoid& avoid, absl::Time now) const;
  v1::Job Described(v1::Job job, absl::Time now) const;

  // waits.cc: who waits for what, and what follows from it.
  // How many jobs go before one that waits for a tuner. All are put in order once, for as many questions as come.
  using Place = std::function<int(const std::string& job_id)>;
  Place InOrder() const;
  std::string WaitingFor(const v1::Job& job, absl::Time now, const Place& place) const;
  std::string TurnOf(const v1::Job& job, absl::Time now) const;
  std::string Absent(const v1::Requirements& requirements, absl::Time now) const;
  const v1::Requirements* AbsentFor(const v1::Job& job, absl::Time now) const;
  void CheckQueued(absl::Time now);
  JobBook::Absent AbsentForLong(absl::Time now);
  JobBook::Used Used() const;
  BatchQueue::Served Served(absl::Time now) const;

  std::optional<Recordable> Vouched(const v1::SynchronizeRequest& request, const v1::LeaseResult& finished) const;

  const FarmOptions options_;
  const std::string receipt_key_;
  absl::Time last_now_ = absl::InfinitePast();
  absl::Duration stood_still_;
  std::string trouble_;
  JobBook jobs_;
  DeviceRegistry devices_;
  BatchQueue batches_;
  std::map<std::string, absl::Time> absent_since_;  // running jobs whose batches no device can take
  std::string last_concerned_;  // where the search for the next one goes on, so that all get their turn
  Histogram lease_waits_ = LongTimes();
  std::map<v1::FailureKind, int64_t> outcomes_;
  int64_t accepted_ = 0, stale_ = 0, lost_ = 0, recovered_ = 0;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_FARM_H_
