// SPDX-License-Identifier: Apache-2.0
// The tracker's queue: jobs, batches and devices joined into one state machine that answers every call of the protocol.
//
// Pure state: no threads, no input or output, no clock. Every call takes `now`; a time before the last one counts as
// the last one. The gRPC shell (tracker/shell.h) serializes the calls, stores what must survive, and holds calls that
// wait. The simulator in tests/farm drives the same class with thousands of fake agents. Start at Synchronize. Not
// thread-safe.
//
// Four kinds of failure are told apart (docs/TROUBLE.md):
// - of a candidate: it is the candidate's outcome;
// - of a batch: the batch is tried on other devices (BatchQueue::RejectLease);
// - of a device: it counts against the device (health.h);
// - of the tracker itself: a standstill counts against no limit (AdvanceClock). While nothing can be stored, no work is
//   given out, and the limits of queued batches do not run (SetStorageFailure).
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
#include "tracker/queue/fleet_watches.h"
#include "tracker/queue/histogram.h"
#include "tracker/queue/jobs.h"
#include "tracker/queue/limits.h"
#include "tracker/queue/trials_by_minute.h"
#include "tracker/queue/tuners.h"

namespace hone::tracker {

class Farm {
 public:
  // incarnation: counts the starts of the tracker, from 1; greater than at every earlier start. Epochs carry it, so
  // that an epoch of an earlier start is recognized.
  // receipt_key: a secret of the farm that never changes (receipt.h).
  Farm(FarmOptions options, uint64_t incarnation, const DrawId& draw_id, std::string receipt_key);

  // Restores the stored state. Must come before any other call. drained: agent ids with their reasons. health: by
  // "agent/device".
  void Restore(std::vector<v1::Job> jobs, const std::vector<std::pair<std::string, std::string>>& drained,
               std::map<std::string, v1::HealthRecord> health = {}, std::vector<v1::FleetWatch> watches = {});

  // --- agents -------------------------------------------------------------------------------------------------------
  // The results in the request that Synchronize would accept, also those of forgotten leases with a valid receipt.
  // Changes nothing but the clock. The caller stores the results and then calls Synchronize with the request. If they
  // cannot be stored, it calls Synchronize with DeferResults's request, and the agent sends the results again.
  std::vector<Recordable> AcceptableResults(const v1::SynchronizeRequest& request, absl::Time now);
  // Returns the request without its results, with their live leases listed as running. Marks these leases as answered,
  // so that they do not expire.
  v1::SynchronizeRequest DeferResults(v1::SynchronizeRequest request);

  struct Answer {
    v1::SynchronizeResponse response;
    bool news = false;  // false: the response tells the agent nothing new, and the call may be held for `hold`
    absl::Duration hold = absl::ZeroDuration();
  };
  absl::StatusOr<Answer> Synchronize(const v1::SynchronizeRequest& request, absl::Time now);
  // The job that the live lease belongs to; "" for an unknown or ended lease.
  std::string JobOfLease(const std::string& lease_id) const;
  // The agent waits in an open call while its results are being stored: it is not silent.
  void NoteAlive(const std::string& agent_id, absl::Time now);
  // The open call of the agent broke off, or the agent may not call any more.
  void NoteBrokenOff(const std::string& agent_id, absl::Time now);
  // Names the next agent to call Offer for: its call is held, and it has an idle device for the oldest newly queued
  // piece. The caller calls Offer and then this again, until it returns nullopt: no newly queued piece is left that
  // such an agent could take. If Offer leaves the call held, the caller must call SkipNewlyQueued before the next call.
  // Offer may lease another piece that goes first; the newly queued one is then looked at again. held: whether the call
  // of an agent is held.
  std::optional<std::string> NextAgentForNewWork(const std::function<bool(const std::string&)>& held, absl::Time now);
  void SkipNewlyQueued() { batches_.SkipNewlyQueued(); }
  // The response for an agent whose call is held; nullopt: there is nothing to tell it, and the call stays held.
  // kAborted: a newer call of the agent replaced this one.
  absl::StatusOr<std::optional<v1::SynchronizeResponse>> Offer(const v1::SynchronizeRequest& held, absl::Time now);

  // --- tuners -------------------------------------------------------------------------------------------------------
  // An empty response: there is no job for the tuner.
  absl::StatusOr<v1::LeaseJobResponse> LeaseJob(const v1::LeaseJobRequest& request, absl::Time now);
  absl::StatusOr<v1::ReportProgressResponse> ReportProgress(const v1::ReportProgressRequest& request, absl::Time now);
  absl::StatusOr<v1::SubmitBatchResponse> SubmitBatch(v1::SubmitBatchRequest request, absl::Time now);
  // A response with neither `finished` batches nor `cancelled` set: there is no news, and the call may be held.
  absl::StatusOr<v1::WaitBatchResponse> WaitBatch(const v1::WaitBatchRequest& request, absl::Time now);
  absl::Status CompleteJob(const v1::CompleteJobRequest& request, absl::Time now);

  // --- clients and operators ----------------------------------------------------------------------------------------
  absl::StatusOr<v1::Job> SubmitJob(const v1::JobSpec& spec, absl::Time now);
  absl::StatusOr<v1::Job> GetJob(const std::string& job_id, absl::Time now) const;
  // The jobs as JobQueue::SummaryOf shows them; unknown ids are left out.
  std::vector<v1::Job> GetJobSummaries(const std::vector<std::string>& ids, absl::Time now) const;
  std::vector<v1::Job> ListJobs(const v1::ListJobsRequest& request, absl::Time now);
  absl::StatusOr<v1::WatchJobResponse> WatchJob(const v1::WatchJobRequest& request, absl::Time now) const;
  absl::StatusOr<v1::Job> CancelJob(const std::string& job_id, absl::Time now);
  void RecordNotice(const std::string& job_id, const v1::JobNotice& notice) { jobs_.RecordNotice(job_id, notice); }
  // Fleet watches (watched_runs.cc). submitter: only their watch may be changed; nullopt: every watch.
  absl::StatusOr<v1::FleetWatch> AddWatch(v1::FleetWatchSpec spec, absl::Time now);
  absl::StatusOr<v1::FleetWatch> RunWatch(const std::string& name, const std::optional<std::string>& submitter,
                                          absl::Time now);
  absl::StatusOr<v1::FleetWatch> AcceptNight(const std::string& name, const std::string& device,
                                             const std::optional<std::string>& submitter, absl::Time now);
  absl::Status RemoveWatch(const std::string& name, const std::optional<std::string>& submitter, absl::Time now);
  absl::StatusOr<v1::FleetWatch> GetWatch(const std::string& name, absl::Time now) const;
  std::vector<v1::FleetWatch> ListWatches(absl::Time now) const;  // by name, with the newest nights
  std::vector<NightNotice> NightNotices() const { return watches_.NoticesToSend(); }
  void RecordNotice(const NightNotice& sent, const v1::JobNotice& notice) { watches_.RecordNotice(sent, notice); }
  FleetWatches::Rows TakeChangedWatches() { return watches_.TakeChanged(); }
  // With for_work: the devices that fit, best kind first; that kind is noted for the job (JobQueue::NoteKind).
  std::vector<v1::Device> ListDevices(const v1::ListDevicesRequest& request, absl::Time now);
  std::vector<v1::Tuner> ListTuners(absl::Time now);
  // Whether the running job's batches wait because no device can take them. Its tuner still reports the speed of
  // before.
  bool LacksDevice(const std::string& job_id) const { return absent_since_.contains(job_id); }
  // The files among these that open jobs, batches or watches name.
  std::set<std::string> FilesInUse(const std::vector<std::string>& digests) const;
  // The packages that tuners had run for their jobs (JobSpec.model), once these jobs have ended. Each is returned once,
  // and none that another job may have run again: one that runs it, or that may be storing it now.
  std::vector<std::string> TakeUnneededPackages();
  // Whether a run that a device of the agent has leased names the file.
  bool AgentNeedsFile(const std::string& agent_id, const std::string& digest) const;
  // Whether a tuner of this name holds a job whose model has the file.
  bool TunerNeedsFile(const std::string& tuner, const std::string& digest) const;
  // Who submitted the runs that devices of the agent have leased and whose outputs are stored (submitter.h).
  std::set<std::string> SubmittersOfOutputs(const std::string& agent_id) const;
  // Who submitted the jobs with a model that tuners of this name hold.
  std::set<std::string> SubmittersOfModels(const std::string& tuner) const;
  // The agents that have reported the file as outputs of a run of this submitter.
  std::set<std::string> AgentsThatReported(const std::string& submitter, const std::string& digest) const;
  // Why nothing can be stored, such as a full disk; "" when storing works. Otherwise no work is given out.
  void SetStorageFailure(const std::string& why) { storage_failure_ = why; }
  const std::string& storage_failure() const { return storage_failure_; }
  // kUnavailable while storage_failure() is set. Calls of clients and tuners that would change stored state check it
  // first. The shell checks it before Drain and Undrain.
  absl::Status CheckStorage() const;
  void Drain(const std::string& agent_id, const std::string& reason) { devices_.Drain(agent_id, reason); }
  void Undrain(const std::string& agent_id) { devices_.Undrain(agent_id); }
  v1::GetFarmResponse Counters(absl::Time now) const;
  // Seconds from a batch's submission to the first lease of each of its pieces, since the start.
  const Histogram& lease_waits() const { return lease_waits_; }
  // How many candidates got an accepted outcome since the start, by kind of failure; measured ones count as
  // FAILURE_KIND_UNSPECIFIED.
  const std::map<v1::FailureKind, int64_t>& outcomes() const { return outcomes_; }
  const TrialsByMinute& trials_by_minute() const { return trials_by_minute_; }

  // --- the shell ----------------------------------------------------------------------------------------------------
  // Acts on the passing of time: silent agents and tuners, leases and batches past their limits. The shell calls it
  // twice a second.
  void Tick(absl::Time now);
  // Sets by how much the wall clock is ahead of `now`, which comes from a steady clock. Stored jobs and all times that
  // users give and see are by the wall clock.
  void SetWallOffset(absl::Duration ahead) { jobs_.SetWallOffset(ahead); }
  absl::Time ToWallTime(absl::Time time) const { return time + jobs_.wall_offset(); }
  // The sum of all standstills of the tracker since its start. They count against no limit.
  absl::Duration time_stalled() const { return time_stalled_; }
  // Each returns what was gathered since its last call. Changed jobs, records and health must be stored.
  std::vector<const v1::Job*> TakeChangedJobs() { return jobs_.TakeChanged(); }
  // Ids of jobs with new events, for calls that watch them.
  std::set<std::string> TakeJobsWithNewEvents() { return jobs_.TakeJobsWithNewEvents(); }
  // Ids of jobs that ended long ago and were dropped; they must be deleted from the store.
  std::vector<std::string> TakeForgottenJobs() { return jobs_.TakeForgotten(); }
  std::vector<Recordable> TakeGivenUp();
  std::map<std::string, v1::HealthRecord> TakeChangedHealth() { return devices_.TakeChangedHealth(); }

  // For the simulator's invariants.
  const BatchQueue& batches() const { return batches_; }
  const DeviceRegistry& devices() const { return devices_; }
  const JobQueue& jobs() const { return jobs_; }

 private:
  absl::Time AdvanceClock(absl::Time now);
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
  // The device that held the ended lease is idle again.
  void FreeDevice(const BatchQueue::Lease& lease);
  void LoseLease(const std::string& lease_id, const std::string& why, absl::Time now);
  void LoseOrphans(Agent& agent, absl::Time now);
  void DropReleasedJobs();
  bool CanTake(const Agent& agent, const Device& device, const v1::Batch& batch, const Avoid& avoid,
               absl::Time now) const;
  bool AnotherCouldTake(const v1::Batch& batch, const Avoid& avoid, absl::Time now) const;
  // The job as clients see it.
  v1::Job Described(const v1::Job& job, absl::Time now) const;

  // runs.cc: jobs that run packages.
  void CheckQueuedRun(const v1::Job& job, absl::Time now);
  void EndRuns(absl::Time now);
  // The device ("agent/device") was lost with the run.
  void LoseRun(const std::string& job_id, const std::string& device, const std::string& why, absl::Time now);

  // watched_runs.cc: the jobs that measure fleet watches.
  void RunWatches(absl::Time now);
  void StartNight(const std::string& name, const std::string& device, absl::Time due, absl::Time now);
  void EndNights(absl::Time now);

  // waits.cc: what jobs wait for, and which jobs get or lose a tuner because of it.
  // A function that returns how many jobs get a tuner before the given one. JobsAhead sorts the jobs once; the function
  // may be called for many jobs.
  using Place = std::function<int(const std::string& job_id)>;
  Place JobsAhead() const;
  // Sets in a copy of the job what depends on other jobs and on devices.
  void SetPresent(const v1::Job& job, absl::Time now, const Place& place, v1::Job& shown) const;
  std::string WaitingFor(const v1::Job& job, absl::Time now, const Place& place) const;
  // The watch with what its open jobs wait for.
  v1::FleetWatch Described(v1::FleetWatch watch, absl::Time now, const Place& place) const;
  std::string DescribeTurn(const v1::Job& job, absl::Time now) const;
  std::string DescribeAbsence(const v1::Requirements& requirements, absl::Time now) const;
  const v1::Requirements* UnmetRequirements(const v1::Job& job, absl::Time now) const;
  void CheckQueued(absl::Time now);
  JobQueue::UnservedJobs JobsUnservedForLong(absl::Time now);
  JobQueue::UseByUser UseByUser() const;
  BatchQueue::Served Served(absl::Time now) const;

  std::optional<Recordable> ResultUnderReceipt(const v1::SynchronizeRequest& request,
                                               const v1::LeaseResult& finished) const;
  // Sets what the job says about the batch.
  void AddNames(Recordable& recordable) const;

  const FarmOptions options_;
  const DrawId draw_id_;
  const std::string receipt_key_;
  absl::Time last_now_ = absl::InfinitePast();
  absl::Duration time_stalled_;
  std::string storage_failure_;
  JobQueue jobs_;
  TunerRegistry tuners_;
  DeviceRegistry devices_;
  BatchQueue batches_;
  std::map<std::string, std::set<std::string>> model_packages_;  // digests, by the job with the model
  FleetWatches watches_;
  std::map<std::string, absl::Time> watched_since_;  // open jobs of watches; since when they wait in this run
  std::map<std::string, absl::Time> absent_since_;   // running jobs whose batches no device can take; since when
  std::string last_agent_offered_;  // NextAgentForNewWork continues after this agent, so that every agent is asked
  Histogram lease_waits_ = QueueTimeBuckets();
  std::map<v1::FailureKind, int64_t> outcomes_;
  TrialsByMinute trials_by_minute_;  // candidates with an accepted outcome
  // Results accepted and refused, leases lost, and results accepted by their receipt alone, since the start.
  int64_t accepted_ = 0, stale_ = 0, lost_ = 0, recovered_ = 0;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_FARM_H_
