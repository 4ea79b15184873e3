// SPDX-License-Identifier: Apache-2.0
#include "tuner/speed_factor.h"

#include <algorithm>
#include <cmath>

namespace hone::tuner {
namespace {

// The range within which two speed factors count as near. Luck does not change a time by more. A device that changes by
// more has a new speed, which the next visit must repeat.
constexpr double kSpeedChangeMin = 0.8, kSpeedChangeMax = 1.25;

bool IsNear(double speed_factor, double other) {
  return speed_factor >= kSpeedChangeMin * other && speed_factor <= kSpeedChangeMax * other;
}

}  // namespace

std::optional<double> SpeedFactor::Update(LatencyEstimate& estimate, double seconds) {
  const double speed_factor = seconds / estimate.seconds;
  const bool as_it_was = IsNear(speed_factor, factor_), again = last_ == 0 || IsNear(speed_factor, last_);
  last_ = speed_factor;
  if (!as_it_was && !again) return std::nullopt;
  if (!as_it_was) factor_ = speed_factor;
  estimate.seconds *= std::pow(speed_factor / factor_, 1 / (1 + static_cast<double>(estimate.timings)));
  estimate.timings = std::min(estimate.timings + 1, kConfirmedTimings);
  return seconds / estimate.seconds;
}

}  // namespace hone::tuner
