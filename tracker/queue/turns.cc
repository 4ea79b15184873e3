// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/turns.h"

namespace hone::tracker {

void Turns::Pass(absl::Time now) {
  const absl::Duration gone = passed_ == absl::InfinitePast() ? absl::ZeroDuration() : now - passed_;
  passed_ = now;
  if (gone <= absl::ZeroDuration()) return;
  for (auto& [job_id, job] : jobs_) {
    for (const auto& [kind, pieces] : job.running) {
      shares_.try_emplace(kind, share_half_life_).first->second.Add(job.user, gone * pieces, now);
    }
    if (job.running.empty() && job.queued > 0) job.waited += gone;
  }
}

void Turns::GiveBack(absl::Duration stall) {
  passed_ += stall;
  for (auto& [kind, shares] : shares_) shares.GiveBack(stall);
}

double Turns::UsedBy(const std::string& user, const std::string& kind) const {
  const auto found = shares_.find(kind);
  return found == shares_.end() ? 0 : found->second.Of(user, passed_);
}

double Turns::UsedBy(const std::string& user) const {
  double used = 0;
  for (const auto& [kind, shares] : shares_) used += shares.Of(user, passed_);
  return used;
}

void Turns::Queued(const std::string& job_id, const std::string& user) {
  Job& job = jobs_[job_id];
  job.user = user;
  job.queued += 1;
}

void Turns::Began(const std::string& job_id, const std::string& kind) {
  Job& job = jobs_.at(job_id);
  job.queued -= 1;
  job.running[kind] += 1;
}

void Turns::Ended(const std::string& job_id, const std::string& kind) {
  std::map<std::string, int>& running = jobs_.at(job_id).running;
  if (--running.at(kind) == 0) running.erase(kind);
}

void Turns::Withdrawn(const std::string& job_id) { jobs_.at(job_id).queued -= 1; }

void Turns::Forget(const std::string& job_id) { jobs_.erase(job_id); }

bool Turns::Waits(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found != jobs_.end() && found->second.running.empty() && found->second.queued > 0;
}

absl::Duration Turns::Waited(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? absl::ZeroDuration() : found->second.waited;
}

}  // namespace hone::tracker
