// SPDX-License-Identifier: Apache-2.0
// The jobs of a farm: submission, the leases under which tuners work on them, progress, events, and the end.
//
// A job is queued, running (a tuner holds its lease) or ended. Pure state: no threads, no input or output, no clock;
// calls that depend on time take `now`, which must not go back (Farm ensures that). Not here: batches and devices.
// Start at Submit and Lease. Not thread-safe.
#ifndef HONE_TRACKER_QUEUE_JOBS_H_
#define HONE_TRACKER_QUEUE_JOBS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/tuner.pb.h"
#include "proto/convert.h"
#include "tracker/queue/draw_id.h"
#include "tracker/queue/file_uses.h"
#include "tracker/queue/latency_history.h"
#include "tracker/queue/limits.h"

namespace hone::tracker {

class JobQueue {
 public:
  // A lease given to a tuner. `job` is valid until the next change.
  struct Grant {
    v1::JobLease lease;
    const v1::Job* job;
  };

  // incarnation: counts the starts of the tracker, greater than at every earlier start; epochs and event numbers carry
  // it.
  JobQueue(JobOptions options, uint64_t incarnation, DrawId draw_id)
      : options_(options), incarnation_(incarnation), draw_id_(std::move(draw_id)) {}

  // Restores a stored job at start. An open job is queued again: the lease of its tuner has ended, which does not count
  // as a loss.
  void Restore(v1::Job job);

  // Queues a job, or returns the known one with the same request id. kInvalidArgument; kResourceExhausted: the
  // submitter's open jobs are too many or take too much memory.
  absl::StatusOr<const v1::Job*> Submit(const v1::JobSpec& spec, absl::Time now);
  // Returns the recent device seconds of a user (FairShare::UsedBy). Null: no user has any.
  using UseByUser = std::function<double(const std::string& user)>;
  // Leases the first job that can be leased; nullopt: there is none. The order: highest priority; the user with the
  // fewest running jobs; the user with the least recent use of devices; the oldest job. A lease that the tuner still
  // holds is ended first: an older boot of it was lost, or the same boot did not receive the answer.
  std::optional<Grant> Lease(const std::string& tuner_id, const std::string& boot_id, absl::Time now,
                             const UseByUser& used = nullptr);
  // The tuner stops: its leases end, and a delayed LeaseJob call of the same boot gets no job.
  void RemoveTuner(const std::string& tuner_id, const std::string& boot_id, absl::Time now);
  // Sets why a queued job must not be leased; "": it may be leased.
  void SetBlocked(const std::string& job_id, const std::string& why, absl::Time now);
  const std::string& blocked(const std::string& job_id) const { return jobs_.at(job_id).blocked; }
  // For each job that waits only for a tuner: how many jobs would be leased before it.
  std::map<std::string, int> JobsAhead(const UseByUser& used) const;
  // Stores `needs` as the job's conditions for devices, if they name a kind of device (fingerprint_digest) and the
  // job's conditions do not yet. Otherwise it has no effect, so the first kind stays. Only Complete, when the tuner
  // returns the job, and Preempt replace conditions that name a kind.
  void Pin(const std::string& job_id, const v1::Requirements& needs);
  // Notes the kind of device that the job's tuner was told to use. Not stored, because the first batch pins the job.
  void NoteKind(const std::string& job_id, const std::string& kind);
  // The kind of device that the job is pinned to, else the one it asked for (JobSpec.device_kind), else the noted one;
  // "" if there is none.
  std::string KindOf(const std::string& job_id) const;
  // Running jobs whose batches no device can take, with the conditions that no device fulfils.
  using UnservedJobs = std::map<std::string, v1::Requirements>;
  // Preempts at most one running job if another job has waited for a tuner for long enough, counted from the last
  // preemption at the earliest. A job in `absent` is preempted after JobOptions::preempt_absent_when_wanted_for, and
  // its conditions become those in `absent`. After preempt_after also a job of lower priority is preempted, or one of a
  // user with at least two more running jobs than the user who waits. The preempted job is queued again, which does not
  // count as a loss.
  void Preempt(absl::Time now, const UnservedJobs& absent, const UseByUser& used);
  // kResourceExhausted: the other tuners of the same name (the part before a '/') hold JobOptions::leased_jobs_max
  // jobs.
  absl::Status CheckQuota(const std::string& tuner_id) const;
  // The holder of the lease is alive. Returns true if the job was cancelled, so that the tuner must stop. kAborted: the
  // lease has ended.
  absl::StatusOr<bool> RenewLease(const v1::JobLease& lease, absl::Time now);
  absl::StatusOr<bool> Report(const v1::JobLease& lease, const v1::JobProgress& progress, absl::Time now);
  absl::Status Complete(const v1::CompleteJobRequest& request, absl::Time now);
  absl::StatusOr<const v1::Job*> Cancel(const std::string& job_id, absl::Time now);
  // Ends the leases of silent tuners, ends jobs whose JobSpec.until has passed, and forgets jobs that ended long ago.
  void Expire(absl::Time now);
  // The tracker stood still for `stall`: that time counts neither as silence of tuners nor as waiting of jobs.
  void ExcludeStall(absl::Duration stall, absl::Time now);
  // Sets by how much the wall clock is ahead of `now`. Times in v1::Job are by the wall clock.
  void SetWallOffset(absl::Duration ahead) { wall_offset_ = ahead; }
  absl::Duration wall_offset() const { return wall_offset_; }

  bool HasRequest(const std::string& request_id) const { return by_request_id_.contains(request_id); }
  const v1::Job* Find(const std::string& job_id) const;  // nullptr when unknown
  // The id of the tuner that holds the job's lease; "" for a job that no tuner holds.
  std::string TunerIdOf(const std::string& job_id) const { return jobs_.at(job_id).tuner_id; }
  // How the latency of a job's model developed since the tracker started; empty for an unknown job.
  std::vector<LatencyHistory::Point> LatenciesOf(const std::string& job_id) const;
  std::string TunerOf(const std::string& job_id) const;  // the name of the tuner that holds its lease (before the '/')
  // The job without the texts and hints of its workloads and the files of its model, which only tuners need, and
  // without the report of its last run.
  v1::Job WithoutWorkloadTexts(const std::string& job_id);
  std::vector<const v1::Job*> List(const v1::ListJobsRequest& request) const;  // newest first
  std::vector<v1::JobEvent> Events(const std::string& job_id, int64_t after) const;
  // Whether the job has events with a number above `after`.
  bool HasEvents(const std::string& job_id, int64_t after) const;
  int open() const;
  bool waiting() const;  // whether some job waits only for a tuner
  // Whether a tuner holds a job, or asked for one not long ago.
  bool HasTuner(absl::Time now) const;
  std::vector<const v1::Job*> InState(v1::JobState state) const;
  const FileUses& files() const { return files_; }  // of open jobs

  // A job with JobSpec.run (runs.cc). StartRun: a device took its batch. LoseRun: that device ("agent/device") was
  // lost; the job is queued again, or fails when that happened too often. ReturnRun: the device gave it back unused; it
  // is queued again. EndRun: its batch has the result. StartRun changes only a queued job, LoseRun and ReturnRun only a
  // running one, and EndRun only an open one.
  void StartRun(const std::string& job_id, absl::Time now);
  void LoseRun(const std::string& job_id, const std::string& device, const std::string& why, absl::Time now);
  void ReturnRun(const std::string& job_id, absl::Time now);
  void EndRun(const std::string& job_id, const v1::BatchResult& result, absl::Time now);

  // Ids of jobs whose lease ended since the last call, and of ended jobs with a run: their batches must be dropped.
  std::vector<std::string> TakeReleased();
  // Ended jobs with a notify_url whose notice was neither delivered nor given up.
  std::vector<const v1::Job*> JobsToNotify() const;
  // Stores the outcome of an attempt to deliver the job's notice.
  void RecordNotice(const std::string& job_id, const v1::JobNotice& notice);

  // Jobs that changed since the last call and must be stored. The pointers are valid until the next change.
  std::vector<const v1::Job*> TakeChanged();
  // Ids of jobs that have new events since the last call.
  std::set<std::string> TakeJobsWithNewEvents() { return std::exchange(news_, {}); }

  // Ids of jobs that were forgotten since the last call.
  std::vector<std::string> TakeForgotten();

  static bool Ended(const v1::Job& job);
  // The job as lists and notices show it: without its workloads, whose texts may have megabytes, and without the fields
  // that only its tuner needs.
  static v1::Job SummaryOf(const v1::Job& job);

 private:
  struct Entry {
    v1::Job job;
    int64_t number = 0;                         // order of submission
    size_t spec_bytes = 0, progress_bytes = 0;  // memory
    // The live lease while the job runs. After the end it stays, so that the last calls of its tuner are recognized.
    std::string lease_id;
    uint64_t epoch = 0;
    std::string tuner_id, boot_id;
    absl::Time last_heard;
    absl::Time leased = absl::InfinitePast();
    absl::Time ready = absl::InfinitePast();   // since when it waits only for a tuner
    absl::Time stored = absl::InfinitePast();  // when TakeChanged last returned the job for its progress
    absl::Time ended;                          // by the queue's clock, because the wall clock may be set by years
    std::string blocked;                       // why it must not be leased; "": it may be
    std::string kind;                          // the kind of device that its tuner was told to use; "": none
    std::deque<v1::JobEvent> events;           // the newest ones
    size_t events_bytes = 0;                   // memory
    int64_t last_sequence = 0;                 // number of the newest event
    LatencyHistory latency;
  };

  static bool NeedsTuner(const Entry& entry) { return !entry.job.spec().has_run(); }
  static bool Tuned(const Entry& entry) { return entry.job.state() == v1::JOB_STATE_RUNNING && NeedsTuner(entry); }
  static bool Ready(const Entry& entry) {
    return entry.job.state() == v1::JOB_STATE_QUEUED && entry.blocked.empty() && NeedsTuner(entry);
  }
  // The order of jobs, smallest first: negated priority, running jobs of the user, the user's recent use, age.
  using Rank = std::tuple<int, int, double, int64_t>;
  Rank RankOf(const Entry& entry, const std::map<std::string, int>& running, const UseByUser& used) const;
  std::map<std::string, int> RunningByUser() const;
  const Entry* First(const std::map<std::string, int>& running, const UseByUser& used) const;
  Entry* Last(const Entry& first, const std::map<std::string, int>& running, const UseByUser& used);
  void EndPastDeadline(Entry& entry, absl::Time now);
  // Notes why the job ends without the run of its model, if it has one to make.
  static void NoteUnconfirmed(Entry& entry, const std::string& why);

  absl::Status CheckOpen(const v1::JobSpec& spec) const;
  absl::Status SetProgress(Entry& entry, const v1::JobProgress& report, absl::Time now);
  static void DropOldestEvent(Entry& entry);
  void EndLeasesOf(const std::string& tuner_id, const std::string& boot_id, absl::Time now);
  absl::StatusOr<Entry*> Live(const v1::JobLease& lease);
  void SetState(Entry& entry, v1::JobState state, absl::Time now);
  void AddEvent(Entry& entry, v1::JobEvent event, absl::Time now);
  void LoseTuner(Entry& entry, absl::Time now);
  void ReturnJob(Entry& entry, absl::Time now);
  void ForgetEnded(absl::Time now);
  bool MustBeKept(const Entry& ended, absl::Time now) const;
  google::protobuf::Timestamp Stamp(absl::Time now) const { return ToProto(now + wall_offset_); }
  static v1::JobLease LeaseOf(const Entry& entry);
  // Events are not stored. Their numbers begin above all numbers of earlier incarnations, so that none is used twice.
  int64_t FirstSequence() const { return static_cast<int64_t>(incarnation_ << 32); }

  const JobOptions options_;
  const uint64_t incarnation_;
  const DrawId draw_id_;
  int64_t next_number_ = 0;
  uint64_t next_epoch_ = 0;
  absl::Time tuner_asked_ = absl::InfinitePast();  // when a tuner last asked for a job
  std::map<std::string, Entry> jobs_;
  std::map<std::string, std::string> by_request_id_;
  std::map<std::pair<std::string, std::string>, absl::Time>
      left_;        // (tuner, boot) after RemoveTuner, and when that was; kept for lease_ttl from then
  FileUses files_;  // of open jobs
  std::set<std::string> changed_, news_;
  absl::Time preempted_ = absl::InfinitePast();
  absl::Duration wall_offset_;
  std::vector<std::string> released_, forgotten_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_JOBS_H_
