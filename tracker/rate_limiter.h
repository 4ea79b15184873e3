// SPDX-License-Identifier: Apache-2.0
// A rate limiter: a token bucket for each key. Pure: time is passed in. Not thread-safe.
#ifndef HONE_TRACKER_RATE_LIMITER_H_
#define HONE_TRACKER_RATE_LIMITER_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace hone::tracker {

struct Rate {
  double per_second;  // on average
  double burst;       // the burst, which is the size of the bucket; at least 1
};

class RateLimiter {
 public:
  explicit RateLimiter(Rate rate) : rate_(rate) {}

  // Takes one token from the key's bucket; false: the bucket is empty. If `now` goes back, the last time counts.
  bool Take(const std::string& key, absl::Time now);
  size_t keys() const { return left_.size(); }  // keys whose bucket is not full, roughly

 private:
  struct Left {
    double amount;
    absl::Time at;
  };
  double Now(const Left& left, absl::Time now) const;
  void ForgetFull(absl::Time now);

  const Rate rate_;
  std::map<std::string, Left> left_;
  size_t forget_at_ = 64;  // ForgetFull runs when there are so many keys
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_RATE_LIMITER_H_
