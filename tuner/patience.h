// SPDX-License-Identifier: Apache-2.0
// How long a job has waited: for a tracker that is being restarted, stands still or has a full disk; and, as the
// tracker says, for others on its device or for a device that is away. Such time is nobody's fault and nobody's budget:
// the clock of a job (Patience::Now) stands still meanwhile; where the tracker says so later, it goes back by that.
//
// Thread-safe: several calls may wait at once, and the time counts once.
#ifndef HONE_TUNER_PATIENCE_H_
#define HONE_TUNER_PATIENCE_H_

#include <functional>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace hone::tuner {

class Patience {
 public:
  explicit Patience(std::function<absl::Time()> clock = SteadyNow) : clock_(std::move(clock)) {}
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  // The time without what was spent waiting: to be compared with itself only (base/steady_time.h).
  absl::Time Now() const;

  // All that the tracker has counted, which only grows; an answer that was overtaken changes nothing.
  void SetWaitedForDevices(absl::Duration waited);

  // One call that waits; until it is destroyed.
  class Wait {
   public:
    explicit Wait(Patience& patience);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    // Logs what is waited for, once a minute for all calls together.
    void Say(const std::string& tracker, const std::string& why);

   private:
    Patience& patience_;
  };

 private:
  absl::Duration Waited() const;  // with the lock held

  const std::function<absl::Time()> clock_;
  mutable std::mutex mutex_;
  int waiting_ = 0;
  absl::Time since_;  // when the first of those that wait began
  absl::Time said_ = absl::InfinitePast();
  absl::Duration before_ = absl::ZeroDuration();
  absl::Duration for_devices_ = absl::ZeroDuration();
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_PATIENCE_H_
