// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/shares.h"

#include <cmath>

namespace hone::tracker {
namespace {

constexpr double kNothing = 1e-6;  // seconds that are as good as none: forgotten

}  // namespace

double Shares::Decayed(const Use& use, absl::Time now) const {
  return use.seconds * std::exp2(-absl::FDivDuration(now - use.at, half_life_));
}

void Shares::Add(const std::string& user, absl::Duration time, absl::Time now) {
  Use& use = use_[user];
  use.seconds = use.seconds > 0 ? Decayed(use, now) : 0;
  use.seconds += absl::ToDoubleSeconds(time);
  use.at = now;
  std::erase_if(use_, [&](const auto& entry) { return Decayed(entry.second, now) < kNothing; });
}

void Shares::GiveBack(absl::Duration stall) {
  for (auto& [user, use] : use_) use.at += stall;
}

double Shares::Of(const std::string& user, absl::Time now) const {
  const auto known = use_.find(user);
  return known == use_.end() ? 0 : Decayed(known->second, now);
}

}  // namespace hone::tracker
