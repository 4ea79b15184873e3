// SPDX-License-Identifier: Apache-2.0
// What each user has had of the devices lately: who had less goes first. Time on a device counts in full when it is
// spent and half as much every half-life later, so that nobody pays for long for what was free to take.
//
// Pure state: no clock; every call takes `now`, which must not go back. Not stored: after some half-lives nothing is
// left of it anyway. Not thread-safe. Start at Add.
#ifndef HONE_TRACKER_QUEUE_SHARES_H_
#define HONE_TRACKER_QUEUE_SHARES_H_

#include <map>
#include <string>

#include "absl/time/time.h"

namespace hone::tracker {

class Shares {
 public:
  explicit Shares(absl::Duration half_life) : half_life_(half_life) {}

  // `time` on one device, ending now.
  void Add(const std::string& user, absl::Duration time, absl::Time now);
  // So long nothing was forgotten, since no clock ran.
  void GiveBack(absl::Duration stall);
  // Seconds on devices, as they count now.
  double Of(const std::string& user, absl::Time now) const;

 private:
  struct Use {
    double seconds = 0;
    absl::Time at;  // when they counted so much
  };
  double Decayed(const Use& use, absl::Time now) const;

  const absl::Duration half_life_;
  std::map<std::string, Use> use_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_SHARES_H_
