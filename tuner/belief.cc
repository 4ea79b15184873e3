// SPDX-License-Identifier: Apache-2.0
#include "tuner/belief.h"

#include <algorithm>
#include <cmath>

namespace hone::tuner {
namespace {

// The range within which two speed factors count as near. Luck does not change a time by more. A device that changes by
// more has a new speed, which the next visit must repeat.
constexpr double kLeastChange = 0.8, kMostChange = 1.25;

bool IsNear(double pace, double other) { return pace >= kLeastChange * other && pace <= kMostChange * other; }

}  // namespace

std::optional<double> Pace::Meet(Belief& belief, double seconds) {
  const double pace = seconds / belief.seconds;
  const bool as_it_was = IsNear(pace, pace_), again = last_ == 0 || IsNear(pace, last_);
  last_ = pace;
  if (!as_it_was && !again) return std::nullopt;
  if (!as_it_was) pace_ = pace;
  belief.seconds *= std::pow(pace / pace_, 1 / (1 + static_cast<double>(belief.times)));
  belief.times = std::min(belief.times + 1, kConfirmed);
  return seconds / belief.seconds;
}

}  // namespace hone::tuner
