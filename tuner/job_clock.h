// SPDX-License-Identifier: Apache-2.0
// The clock of a job, which stands still while the job waits, so that waiting does not use up its budget.
//
// A job waits for its tracker while that is being restarted, hangs or has a full disk. It also waits for its device
// while that measures for other jobs or is away; the tracker reports this time later, and the clock is then set back by
// it. Thread-safe: several calls may wait at once, and the time counts once. Start with JobClock::Now.
#ifndef HONE_TUNER_JOB_CLOCK_H_
#define HONE_TUNER_JOB_CLOCK_H_

#include <functional>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace hone::tuner {

class JobClock {
 public:
  explicit JobClock(std::function<absl::Time()> clock = SteadyNow) : clock_(std::move(clock)) {}
  JobClock(const JobClock&) = delete;
  JobClock& operator=(const JobClock&) = delete;

  // The time less all waiting. Compare it only with other results of Now (base/steady_time.h).
  absl::Time Now() const;

  // Sets the total time that the tracker has counted so far. Totals only grow, so a late answer with a smaller one
  // changes nothing.
  void SetWaitedForDevices(absl::Duration waited);

  // A call that waits for the tracker, from construction to destruction.
  class Wait {
   public:
    explicit Wait(JobClock& job_clock);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    // Logs what is waited for, once a minute for all calls together.
    void LogWaiting(const std::string& tracker, const std::string& why);

   private:
    JobClock& job_clock_;
  };

 private:
  absl::Duration Waited() const;  // with the lock held

  const std::function<absl::Time()> clock_;
  mutable std::mutex mutex_;
  int waiting_ = 0;                                    // calls that wait at present
  absl::Time since_;                                   // when the first of these began; unused if there are none
  absl::Time last_logged_ = absl::InfinitePast();      // when LogWaiting last logged
  absl::Duration before_ = absl::ZeroDuration();       // waiting for the tracker that is over
  absl::Duration for_devices_ = absl::ZeroDuration();  // waiting for devices, as the tracker counts it
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_JOB_CLOCK_H_
