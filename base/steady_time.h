// SPDX-License-Identifier: Apache-2.0
// The time of the steady clock, for deadlines and durations. Setting the system's clock does not change it, so a wait
// neither ends early nor hangs. Its origin is arbitrary: never compare it with absl::Now(), store it or send it.
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
