// SPDX-License-Identifier: Apache-2.0
#include "tuner/patience.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace hone::tuner {
namespace {

constexpr absl::Duration kSayEvery = absl::Minutes(1);

}  // namespace

absl::Duration Patience::Waited() const { return waiting_ > 0 ? before_ + (clock_() - since_) : before_; }

absl::Time Patience::Now() const {
  const std::lock_guard lock(mutex_);
  return clock_() - Waited() - for_devices_;
}

void Patience::SetWaitedForDevices(absl::Duration waited) {
  const std::lock_guard lock(mutex_);
  for_devices_ = std::max(for_devices_, waited);
}

Patience::Wait::Wait(Patience& patience) : patience_(patience) {
  const std::lock_guard lock(patience_.mutex_);
  if (patience_.waiting_++ == 0) patience_.since_ = patience_.clock_();
}

Patience::Wait::~Wait() {
  const std::lock_guard lock(patience_.mutex_);
  const absl::Duration waited = patience_.Waited();
  if (--patience_.waiting_ == 0) patience_.before_ = waited;
}

void Patience::Wait::Say(const std::string& tracker, const std::string& why) {
  const std::lock_guard lock(patience_.mutex_);
  const absl::Time now = patience_.clock_();
  if (now - patience_.said_ < kSayEvery) return;
  patience_.said_ = now;
  spdlog::warn("waiting for tracker {}: {}; nothing is lost, and no time of the job is spent", tracker, why);
}

}  // namespace hone::tuner
