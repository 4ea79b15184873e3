#include "tracker/queue/turns.h"

namespace hone::tracker {

void Turns::Pass(absl::Time now) {
  const absl::Duration gone = passed_ == absl::InfinitePast() ? absl::ZeroDuration() : now - passed_;
  passed_ = now;
  if (gone <= absl::ZeroDuration()) return;
  for (auto& [job_id, job] : jobs_) {
    if (job.running > 0) shares_.Add(job.user, gone * job.running, now);
    if (job.running == 0 && job.queued > 0) job.waited += gone;
  }
}

void Turns::Queued(const std::string& job_id, const std::string& user) {
  Job& job = jobs_[job_id];
  job.user = user;
  job.queued += 1;
}

void Turns::Began(const std::string& job_id) {
  Job& job = jobs_.at(job_id);
  job.queued -= 1;
  job.running += 1;
}

void Turns::Ended(const std::string& job_id) { jobs_.at(job_id).running -= 1; }

void Turns::Withdrawn(const std::string& job_id) { jobs_.at(job_id).queued -= 1; }

void Turns::Forget(const std::string& job_id) { jobs_.erase(job_id); }

bool Turns::Waits(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found != jobs_.end() && found->second.running == 0 && found->second.queued > 0;
}

absl::Duration Turns::Waited(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? absl::ZeroDuration() : found->second.waited;
}

}  // namespace hone::tracker
