// SPDX-License-Identifier: Apache-2.0
// A thread that renews the lease of a job until its destruction. Waiting for the host lock, reading records, learning
// or compiling a model may take longer than a lease lasts.
#ifndef HONE_TUNER_HEARTBEAT_H_
#define HONE_TUNER_HEARTBEAT_H_

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "tuner/farm.h"

namespace hone::tuner {

class Heartbeat {
 public:
  // farm: must outlive this. every: the interval of the calls.
  Heartbeat(Farm& farm, absl::Duration every)
      : thread_([&farm, every](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any stopped;
          std::unique_lock lock(mutex);
          while (!stop.stop_requested()) {
            farm.RenewLease();
            stopped.wait_for(lock, stop, absl::ToChronoNanoseconds(every), [] { return false; });
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_HEARTBEAT_H_
