// SPDX-License-Identifier: Apache-2.0
#include "tuner/job_clock.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace hone::tuner {
namespace {

constexpr absl::Duration kLogPeriod = absl::Minutes(1);

}  // namespace

absl::Duration JobClock::Waited() const { return waiting_ > 0 ? before_ + (clock_() - since_) : before_; }

absl::Time JobClock::Now() const {
  const std::lock_guard lock(mutex_);
  return clock_() - Waited() - for_devices_;
}

void JobClock::SetWaitedForDevices(absl::Duration waited) {
  const std::lock_guard lock(mutex_);
  for_devices_ = std::max(for_devices_, waited);
}

JobClock::Wait::Wait(JobClock& job_clock) : job_clock_(job_clock) {
  const std::lock_guard lock(job_clock_.mutex_);
  if (job_clock_.waiting_++ == 0) job_clock_.since_ = job_clock_.clock_();
}

JobClock::Wait::~Wait() {
  const std::lock_guard lock(job_clock_.mutex_);
  const absl::Duration waited = job_clock_.Waited();
  if (--job_clock_.waiting_ == 0) job_clock_.before_ = waited;
}

void JobClock::Wait::LogWaiting(const std::string& tracker, const std::string& why) {
  const std::lock_guard lock(job_clock_.mutex_);
  const absl::Time now = job_clock_.clock_();
  if (now - job_clock_.last_logged_ < kLogPeriod) return;
  job_clock_.last_logged_ = now;
  spdlog::warn("waiting for tracker {}: {}; nothing is lost, and the wait does not count against the job's time",
               tracker, why);
}

}  // namespace hone::tuner
