// SPDX-License-Identifier: Apache-2.0
// What is believed of times that were taken in different visits, between which a device becomes faster or slower.
//
// What runs again, as the incumbent does in every visit, takes more or less than it is believed to take for two
// reasons: the device, and luck when it was timed before, which what looks best has had. Nobody can tell how much is
// whose. So the more often it was timed, the more of the difference is the device's. A visit that is far off was
// disturbed, unless it is the first after Forget. Start with Pace::Meet.
#ifndef HONE_TUNER_BELIEF_H_
#define HONE_TUNER_BELIEF_H_

#include <cstdint>
#include <optional>

namespace hone::tuner {

struct Belief {
  double seconds = 0;
  int64_t times = 1;  // that it was timed; kConfirmed at most
};

// `times` of what was compared in a confirmation: not chosen for luck, so that a race says nothing more of it.
inline constexpr int64_t kConfirmed = 1'000'000;

// How slow the device is: what something takes there, in multiples of what it is believed to take.
class Pace {
 public:
  // A visit in which what is believed to take `belief` took `seconds`, both positive. Corrects the belief, and returns
  // by what the visit's times are to be divided. Nothing for a disturbance: neither the pace that was nor that of the
  // visit before; then the belief stays as it is.
  std::optional<double> Meet(Belief& belief, double seconds);
  // What was compared in a visit leaves no doubt.
  void Set(double pace) { pace_ = last_ = pace; }
  // What is believed is of another day: the first visit tells how slow the device is now.
  void Forget() { last_ = 0; }
  double now() const { return pace_; }

 private:
  double pace_ = 1;
  double last_ = 1;  // of the visit before, were it a disturbance; 0: whatever comes is no disturbance
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_BELIEF_H_
