// SPDX-License-Identifier: Apache-2.0
// The time by a clock that nobody sets: for what must neither end early nor hang when a person, or the network, sets
// the system's clock. Since some moment of its own: never compare it with absl::Now(), never store it or send it.
#ifndef HONE_BASE_STEADY_TIME_H_
#define HONE_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace hone {

inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace hone

#endif  // HONE_BASE_STEADY_TIME_H_
