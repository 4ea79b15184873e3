// SPDX-License-Identifier: Apache-2.0
// The pauses between two polls of an event. Drivers are polled because their own waits have no deadline.
#ifndef HONE_DRIVERS_POLL_PAUSE_H_
#define HONE_DRIVERS_POLL_PAUSE_H_

#include <algorithm>
#include <chrono>
#include <thread>

namespace hone::drivers {

// The first pause only yields the CPU, so that a short launch is seen to end at once. Each further one is longer, up to
// 1 ms.
class PollPause {
 public:
  void Wait() {
    if (next_.count() == 0) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(next_);
    }
    next_ = std::min(std::chrono::microseconds(1000), next_ * 5 / 4 + std::chrono::microseconds(1));
  }

 private:
  std::chrono::microseconds next_{0};
};

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_POLL_PAUSE_H_
