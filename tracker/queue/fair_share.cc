// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/fair_share.h"

#include <cmath>

namespace hone::tracker {
namespace {

constexpr double kUseSecondsMin = 1e-6;  // less recent use than this is forgotten

}  // namespace

double RecentUse::Decayed(const Use& use, absl::Time now) const {
  return use.seconds * std::exp2(-absl::FDivDuration(now - use.at, half_life_));
}

void RecentUse::Add(const std::string& user, absl::Duration time, absl::Time now) {
  Use& use = use_[user];
  use.seconds = use.seconds > 0 ? Decayed(use, now) : 0;
  use.seconds += absl::ToDoubleSeconds(time);
  use.at = now;
  std::erase_if(use_, [&](const auto& entry) { return Decayed(entry.second, now) < kUseSecondsMin; });
}

void RecentUse::ExcludeStall(absl::Duration stall) {
  for (auto& [user, use] : use_) use.at += stall;
}

double RecentUse::SecondsOf(const std::string& user, absl::Time now) const {
  const auto known = use_.find(user);
  return known == use_.end() ? 0 : Decayed(known->second, now);
}

void FairShare::AdvanceTo(absl::Time now) {
  const absl::Duration gone = charged_ == absl::InfinitePast() ? absl::ZeroDuration() : now - charged_;
  charged_ = now;
  if (gone <= absl::ZeroDuration()) return;
  for (auto& [job_id, job] : jobs_) {
    for (const auto& [kind, pieces] : job.running) {
      use_.try_emplace(kind, half_life_).first->second.Add(job.user, gone * pieces, now);
    }
    if (job.running.empty() && job.queued > 0) job.waited += gone;
  }
}

void FairShare::ExcludeStall(absl::Duration stall) {
  charged_ += stall;
  for (auto& [kind, use] : use_) use.ExcludeStall(stall);
}

double FairShare::UsedBy(const std::string& user, const std::string& kind) const {
  const auto found = use_.find(kind);
  return found == use_.end() ? 0 : found->second.SecondsOf(user, charged_);
}

double FairShare::UsedBy(const std::string& user) const {
  double used = 0;
  for (const auto& [kind, use] : use_) used += use.SecondsOf(user, charged_);
  return used;
}

void FairShare::PieceQueued(const std::string& job_id, const std::string& user) {
  Job& job = jobs_[job_id];
  job.user = user;
  job.queued += 1;
}

void FairShare::PieceStarted(const std::string& job_id, const std::string& kind) {
  Job& job = jobs_.at(job_id);
  job.queued -= 1;
  job.running[kind] += 1;
}

void FairShare::PieceEnded(const std::string& job_id, const std::string& kind) {
  std::map<std::string, int>& running = jobs_.at(job_id).running;
  if (--running.at(kind) == 0) running.erase(kind);
}

void FairShare::PieceWithdrawn(const std::string& job_id) { jobs_.at(job_id).queued -= 1; }

void FairShare::Forget(const std::string& job_id) { jobs_.erase(job_id); }

bool FairShare::IsWaiting(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found != jobs_.end() && found->second.running.empty() && found->second.queued > 0;
}

absl::Duration FairShare::Waited(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? absl::ZeroDuration() : found->second.waited;
}

}  // namespace hone::tracker
