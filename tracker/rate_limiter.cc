// SPDX-License-Identifier: Apache-2.0
#include "tracker/rate_limiter.h"

#include <algorithm>

namespace hone::tracker {

double RateLimiter::Now(const Left& left, absl::Time now) const {
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - left.at));
  return std::min(rate_.burst, left.amount + seconds * rate_.per_second);
}

bool RateLimiter::Take(const std::string& key, absl::Time now) {
  if (left_.size() >= forget_at_) ForgetFull(now);
  Left& left = left_.try_emplace(key, Left{rate_.burst, now}).first->second;
  left.amount = Now(left, now);
  left.at = std::max(left.at, now);
  if (left.amount < 1) return false;
  left.amount -= 1;
  return true;
}

// Drops keys with a full bucket, which behave like unknown keys. Doubling forget_at_ keeps this rare when many keys are
// in use.
void RateLimiter::ForgetFull(absl::Time now) {
  std::erase_if(left_, [&](const auto& entry) { return Now(entry.second, now) >= rate_.burst; });
  forget_at_ = std::max<size_t>(64, 2 * left_.size());
}

}  // namespace hone::tracker
