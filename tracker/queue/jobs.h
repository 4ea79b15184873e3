// SPDX-License-Identifier: Apache-2.0
// Jobs and who works on them: submission, leases of tuners, progress, events, the end.
//
// Pure state: no threads, no input or output, no clock; every call takes `now`, which must not go back (Farm sees to
// that). Knows nothing of batches and devices. Start at Submit and Lease. Not thread-safe.
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
#include "tracker/queue/draw_id.h"
#include "tracker/queue/limits.h"
#include "tracker/queue/times.h"

namespace hone::tracker {

class JobBook {
 public:
  struct Grant {
    v1::JobLease lease;
    const v1::Job* job;
  };

  // incarnation: which start of the farm this is, greater than that of any before; epochs carry it.
  JobBook(JobOptions options, uint64_t incarnation, DrawId draw_id)
      : options_(options), incarnation_(incarnation), draw_id_(std::move(draw_id)) {}

  // Takes back a stored job at start; an open one is queued again. Its tuner's lease is gone, without blame.
  void Restore(v1::Job job);

  // kInvalidArgument; kResourceExhausted: the submitter has too many open ones, or too large ones.
  absl::StatusOr<const v1::Job*> Submit(const v1::JobSpec& spec, absl::Time now);
  // What a user has had of the devices lately; by default nobody had any.
  using Used = std::function<double(const std::string& user)>;
  // The first of the jobs that can be leased: of highest priority; of these of the user of whom fewest are tuned now,
  // then who has had least of the devices; the oldest of these. A lease the tuner still holds is given up first:
  // another boot of it was lost, the same one did not hear the answer.
  std::optional<Grant> Lease(const std::string& tuner_id, const std::string& boot_id, absl::Time now,
                             const Used& used = nullptr);
  // Gives up what that tuner holds, for good: a question that it asked before and that comes after gets nothing.
  void Leave(const std::string& tuner_id, const std::string& boot_id, absl::Time now);
  // Why a queued job is not to be leased now; "" when it may be.
  void SetBlocked(const std::string& job_id, const std::string& why, absl::Time now);
  const std::string& blocked(const std::string& job_id) const { return jobs_.at(job_id).blocked; }
  // Of each job that waits for nothing but a tuner, how many would be leased before it.
  std::map<std::string, int> InOrder(const Used& used) const;
  // What the job's devices must be from now on; later calls change nothing.
  void Pin(const std::string& job_id, const v1::Requirements& needs);
  // The kind of device that a tuner was told to take for a job that it holds; not stored: the first batch pins it.
  void NoteKind(const std::string& job_id, const std::string& kind);
  // That, or the kind that the job is bound to; "" while it is none.
  std::string KindOf(const std::string& job_id) const;
  // Running jobs that no device is there for, and what they need.
  using Absent = std::map<std::string, v1::Requirements>;
  // Where a job has waited for a tuner for a while, takes one, without blame, from a job that gives way: first from one
  // that no device is there for; then from one of lower priority, or of a user who has at least two more than its own.
  void Preempt(absl::Time now, const Absent& absent, const Used& used);
  // kResourceExhausted: the other tuners of its name (what comes before a '/') hold as many leases as one may have.
  absl::Status CheckQuota(const std::string& tuner_id) const;
  // A sign of life under a lease: true when the job was cancelled (the tuner must stop). kAborted: not live.
  absl::StatusOr<bool> Touch(const v1::JobLease& lease, absl::Time now);
  absl::StatusOr<bool> Report(const v1::JobLease& lease, const v1::JobProgress& progress, absl::Time now);
  absl::Status Complete(const v1::CompleteJobRequest& request, absl::Time now);
  absl::StatusOr<const v1::Job*> Cancel(const std::string& job_id, absl::Time now);
  // Ends the leases of silent tuners, and forgets jobs that ended long ago.
  void Expire(absl::Time now);
  // The tracker stood still for so long: nobody was heard because nobody listened, and nobody waited for others.
  void GiveBack(absl::Duration stall, absl::Time now);
  // By how much the clock on the wall is ahead of `now`. Times in jobs are by the wall's.
  void SetWallAhead(absl::Duration ahead) { wall_ahead_ = ahead; }
  absl::Duration wall_ahead() const { return wall_ahead_; }

  bool Knows(const std::string& request_id) const { return by_request_id_.contains(request_id); }
  const v1::Job* Find(const std::string& job_id) const;  // nullptr when unknown
  std::string TunerOf(const std::string& job_id) const;  // that works on it: its name, which it shares with others
  v1::Job ForPeople(const std::string& job_id);          // without the texts and hints of its workloads
  std::vector<const v1::Job*> List(const v1::ListJobsRequest& request) const;  // newest first
  std::vector<v1::JobEvent> Events(const std::string& job_id, int64_t after) const;
  // Whether the job has events after that number.
  bool HasEvents(const std::string& job_id, int64_t after) const;
  int open() const;
  bool waiting() const;  // whether a job waits for nothing but a tuner
  std::vector<const v1::Job*> InState(v1::JobState state) const;

  // Jobs whose lease ended since the last call: their batches are of no use any more.
  std::vector<std::string> TakeReleased();
  // Jobs that ended and of whose end somebody is still to be told; and what came of an attempt, to be stored.
  std::vector<const v1::Job*> ToTell() const;
  void TakeNotice(const std::string& job_id, const v1::JobNotice& notice);

  // Jobs that changed since the last call and are to be stored.
  std::vector<const v1::Job*> TakeChanged();
  // Ids of jobs that have new events since the last call.
  std::set<std::string> TakeNews() { return std::exchange(news_, {}); }

  // Ids of jobs that were forgotten since the last call.
  std::vector<std::string> TakeForgotten();

  static bool Ended(const v1::Job& job);
  // What a line of a list and a notice say of a job: not its workloads, whose texts may have megabytes, nor what is for
  // its tuner alone.
  static v1::Job LineOf(const v1::Job& job);

 private:
  struct Entry {
    v1::Job job;
    int64_t number = 0;                         // order of submission
    size_t spec_bytes = 0, progress_bytes = 0;  // of memory
    // The live lease while the job runs; after the end the last one, so that the tuner's last calls are understood.
    std::string lease_id;
    uint64_t epoch = 0;
    std::string tuner_id, boot_id;
    absl::Time last_heard;
    absl::Time leased = absl::InfinitePast();
    absl::Time ready = absl::InfinitePast();   // since when it waits for nothing but a tuner
    absl::Time stored = absl::InfinitePast();  // when its progress was handed over to be stored
    absl::Time ended;                          // by the queue's clock: that on the wall may be set by years
    std::string blocked;                       // why it is not to be leased
    std::string kind;                          // of device, that its tuner was told
    std::deque<v1::JobEvent> events;
    size_t events_bytes = 0;
    int64_t last_sequence = 0;
  };

  static bool Ready(const Entry& entry) { return entry.job.state() == v1::JOB_STATE_QUEUED && entry.blocked.empty(); }
  // Smaller goes first: priority, how many jobs of the user are tuned, what he had of the devices, age.
  using Rank = std::tuple<int, int, double, int64_t>;
  Rank RankOf(const Entry& entry, const std::map<std::string, int>& running, const Used& used) const;
  std::map<std::string, int> RunningByUser() const;
  const Entry* First(const std::map<std::string, int>& running, const Used& used) const;
  Entry* Last(const Entry& first, const std::map<std::string, int>& running, const Used& used);
  void EndInTime(Entry& entry, absl::Time now);

  absl::Status CheckOpen(const v1::JobSpec& spec) const;
  static absl::Status SetProgress(Entry& entry, const v1::JobProgress& report);
  static void DropOldestEvent(Entry& entry);
  void TakeBack(const std::string& tuner_id, const std::string& boot_id, absl::Time now);
  absl::StatusOr<Entry*> Live(const v1::JobLease& lease);
  void SetState(Entry& entry, v1::JobState state, absl::Time now);
  void AddEvent(Entry& entry, v1::JobEvent event, absl::Time now);
  void LoseTuner(Entry& entry, absl::Time now);
  void ReturnJob(Entry& entry, absl::Time now);
  void ForgetEnded(absl::Time now);
  bool ToBeHeard(const Entry& ended, absl::Time now) const;
  google::protobuf::Timestamp Stamp(absl::Time now) const { return ToProto(now + wall_ahead_); }
  static v1::JobLease LeaseOf(const Entry& entry);
  // Events are not stored: their numbers go on above all those of the incarnation before.
  int64_t FirstSequence() const { return static_cast<int64_t>(incarnation_ << 32); }

  const JobOptions options_;
  const uint64_t incarnation_;
  const DrawId draw_id_;
  int64_t next_number_ = 0;
  uint64_t next_epoch_ = 0;
  std::map<std::string, Entry> jobs_;
  std::map<std::string, std::string> by_request_id_;
  std::map<std::pair<std::string, std::string>, absl::Time> left_;  // tuner and boot, until its questions are over
  std::set<std::string> changed_, news_;
  absl::Time preempted_ = absl::InfinitePast();
  absl::Duration wall_ahead_;
  std::vector<std::string> released_, forgotten_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_JOBS_H_
