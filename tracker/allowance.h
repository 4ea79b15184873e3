// SPDX-License-Identifier: Apache-2.0
// How often something may be done: so many times a second on average, and so many at once. One count for each key.
//
// Pure: time is passed in. Not thread-safe.
#ifndef HONE_TRACKER_ALLOWANCE_H_
#define HONE_TRACKER_ALLOWANCE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace hone::tracker {

struct Rate {
  double per_second;
  double at_once;  // at least 1
};

class Allowance {
 public:
  explicit Allowance(Rate rate) : rate_(rate) {}

  // Takes one of what the key has left; false: it has none left now. A time before an earlier one counts as that.
  bool Take(const std::string& key, absl::Time now);
  size_t keys() const { return left_.size(); }  // those that have less than everything left

 private:
  struct Left {
    double amount;
    absl::Time at;
  };
  double Now(const Left& left, absl::Time now) const;
  void ForgetFull(absl::Time now);

  const Rate rate_;
  std::map<std::string, Left> left_;
  size_t forget_at_ = 64;  // keys
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_ALLOWANCE_H_
