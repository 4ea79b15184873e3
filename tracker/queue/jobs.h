// Jobs and who works on them: submission, leases of tuners, progress, events, the end.
//
// Pure state: no threads, no input or output, no clock; every call takes `now`, which must not go back (Farm sees to
// that). Knows nothing of batches and devices. Start at Submit and Lease. Not thread-safe.
#ifndef HONE_TRACKER_QUEUE_JOBS_H_
#define HONE_TRACKER_QUEUE_JOBS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
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

  // kInvalidArgument; kResourceExhausted: the submitter has too many open ones.
  absl::StatusOr<const v1::Job*> Submit(const v1::JobSpec& spec, absl::Time now);
  // The open job of highest priority, the oldest of equals. A lease the tuner still holds is given up first: another
  // boot of it was lost, the same one did not hear the answer.
  std::optional<Grant> Lease(const std::string& tuner_id, const std::string& boot_id, absl::Time now);
  // kResourceExhausted: the other tuners of its name (what comes before a '/') hold as many leases as one may have.
  absl::Status CheckQuota(const std::string& tuner_id) const;
  // A sign of life under a lease: true when the job was cancelled (the tuner must stop). kAborted: not live.
  absl::StatusOr<bool> Touch(const v1::JobLease& lease, absl::Time now);
  absl::StatusOr<bool> Report(const v1::JobLease& lease, const v1::JobProgress& progress, absl::Time now);
  absl::Status Complete(const v1::CompleteJobRequest& request, absl::Time now);
  absl::StatusOr<const v1::Job*> Cancel(const std::string& job_id, absl::Time now);
  // Ends the leases of silent tuners, and forgets jobs that ended long ago.
  void Expire(absl::Time now);
  // The tracker stood still for so long: nobody was heard because nobody listened.
  void GiveBack(absl::Duration stall, absl::Time now);

  const v1::Job* Find(const std::string& job_id) const;               // nullptr when unknown
  std::vector<const v1::Job*> List(int limit, bool only_open) const;  // newest first; limit 0: all
  std::vector<v1::JobEvent> Events(const std::string& job_id, int64_t after) const;
  // Whether the job has events after that number.
  bool HasEvents(const std::string& job_id, int64_t after) const;
  int open() const;
  bool waiting() const;  // whether a job waits for a tuner

  // Jobs whose lease ended since the last call: their batches are of no use any more.
  std::vector<std::string> TakeReleased();
  // Jobs that changed since the last call and are to be stored.
  std::vector<const v1::Job*> TakeChanged();

  // Ids of jobs that were forgotten since the last call.
  std::vector<std::string> TakeForgotten();

  static bool Ended(const v1::Job& job);

 private:
  struct Entry {
    v1::Job job;
    int64_t number = 0;  // order of submission
    // The live lease while the job runs; after the end the last one, so that the tuner's last calls are understood.
    std::string lease_id;
    uint64_t epoch = 0;
    std::string tuner_id, boot_id;
    absl::Time last_heard;
    std::deque<v1::JobEvent> events;
    int64_t last_sequence = 0;
  };

  absl::StatusOr<Entry*> Live(const v1::JobLease& lease);
  void SetState(Entry& entry, v1::JobState state, absl::Time now);
  void AddEvent(Entry& entry, v1::JobEvent event, absl::Time now);
  void LoseTuner(Entry& entry, absl::Time now);
  void ReturnJob(Entry& entry, absl::Time now);
  void ForgetEnded(absl::Time now);
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
  std::set<std::string> changed_;
  std::vector<std::string> released_, forgotten_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_JOBS_H_
