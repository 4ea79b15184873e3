// SPDX-License-Identifier: Apache-2.0
// Latency estimates that stay comparable although the device is faster in one visit than in another.
//
// The incumbent runs in every visit, and its time differs from its estimate for two reasons. The device's speed has
// changed, or the earlier timing was lucky: a schedule that looks best was probably timed in a good moment. The two
// cannot be separated, so the share that is put down to the device grows with the number of timings. A visit whose
// incumbent is far off its estimate was disturbed and its times are dropped, unless it is the first after
// AcceptNextVisit or the next visit agrees with it. Start with SpeedFactor::Update. Not thread-safe.
#ifndef HONE_TUNER_SPEED_FACTOR_H_
#define HONE_TUNER_SPEED_FACTOR_H_

#include <cstdint>
#include <optional>

namespace hone::tuner {

// The latency estimate of one schedule.
struct LatencyEstimate {
  double seconds = 0;   // of one call
  int64_t timings = 1;  // number of timings behind it, at most kConfirmedTimings
};

// LatencyEstimate::timings of a schedule that a confirmation compared. Its estimate is not a lucky one, so later visits
// of the search hardly change it.
inline constexpr int64_t kConfirmedTimings = 1'000'000;

// The device speed factor: the measured time of a schedule divided by its latency estimate. Above 1 the device is
// slower than when the estimates were made.
class SpeedFactor {
 public:
  // Takes in a visit in which the schedule with estimate `estimate` took `seconds`. Both times must be positive.
  // Corrects the estimate, and returns the factor by which the visit's times must be divided. Returns nullopt, and
  // leaves the estimate as it is, for a disturbed visit: its factor is near neither the current one nor that of the
  // visit before.
  std::optional<double> Update(LatencyEstimate& estimate, double seconds);
  // Sets the factor as measured by a comparison of several schedules, which needs no correction.
  void Set(double speed_factor) { factor_ = last_ = speed_factor; }
  // Accepts any factor from the next visit, because the estimates are of another day.
  void AcceptNextVisit() { last_ = 0; }
  double value() const { return factor_; }

 private:
  double factor_ = 1;
  double last_ = 1;  // factor of the visit before, even if it was disturbed; 0: any next factor is accepted
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_SPEED_FACTOR_H_
