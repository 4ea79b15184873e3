// SPDX-License-Identifier: Apache-2.0
// How many candidates got an outcome in each of the last minutes, for a plot of the farm's speed. Pure. Kept in memory
// only: after a restart of the tracker it begins anew.
#ifndef HONE_TRACKER_QUEUE_TRIALS_BY_MINUTE_H_
#define HONE_TRACKER_QUEUE_TRIALS_BY_MINUTE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace hone::tracker {

class TrialsByMinute {
 public:
  static constexpr int64_t kMinutesMax = 60;
  static constexpr absl::Duration kLeast = absl::Seconds(10);

  struct Minute {
    absl::Time begin;  // by the wall clock
    absl::Duration length;
    int64_t trials = 0;
  };

  // now: by the wall clock. A clock that is set back adds to earlier minutes.
  void Add(int64_t trials, absl::Time now) {
    const int64_t minute = MinuteOf(now);
    if (!first_.has_value()) first_ = minute;
    trials_[minute] += trials;
    while (trials_.size() > kMinutesMax + 1) trials_.erase(trials_.begin());
  }

  // The last minutes until `now`, at most kMinutesMax, since the first trial; in order, those without trials too. The
  // minute under way is among them once it is kLeast old.
  std::vector<Minute> Until(absl::Time now) const {
    std::vector<Minute> minutes;
    if (!first_.has_value()) return minutes;
    const int64_t last = MinuteOf(now - kLeast);
    for (int64_t minute = std::max(*first_, last - kMinutesMax + 1); minute <= last; ++minute) {
      const absl::Time begin = absl::FromUnixSeconds(minute * 60);
      const auto found = trials_.find(minute);
      minutes.push_back({begin, std::min(absl::Minutes(1), now - begin), found == trials_.end() ? 0 : found->second});
    }
    return minutes;
  }

 private:
  static int64_t MinuteOf(absl::Time time) { return absl::ToUnixSeconds(time) / 60; }

  std::optional<int64_t> first_;
  std::map<int64_t, int64_t> trials_;  // by the minute since 1970
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_TRIALS_BY_MINUTE_H_
