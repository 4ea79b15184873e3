// SPDX-License-Identifier: Apache-2.0
#include "tracker/storage_health.h"

#include <fmt/format.h>

namespace hone::tracker {
namespace {

constexpr absl::Duration kLogPeriod = absl::Minutes(1);
constexpr absl::Duration kResultsFailureMemory = absl::Seconds(15);  // agents bring what was refused every four

}  // namespace

std::string StorageHealth::Note(What what, const absl::Status& stored, absl::Time now) {
  Side& side = Of(what);
  const bool was_well = FailureReason(now).empty();
  if (stored.ok()) {
    if (side.failure_reason.empty()) return "";
    side.failure_reason.clear();
    if (!FailureReason(now).empty()) return "";
    last_logged_ = absl::InfinitePast();
    return fmt::format("storing works again after {}; nothing was lost",
                       absl::FormatDuration(absl::Ceil(now - side.since, absl::Seconds(1))));
  }
  if (side.failure_reason.empty()) side.since = now;
  side.last = now;
  side.failure_reason = std::string(stored.message());
  if (!was_well && now - last_logged_ < kLogPeriod) return "";
  last_logged_ = now;
  return fmt::format("the tracker cannot store anything, so all programs wait: {}", side.failure_reason);
}

std::string StorageHealth::FailureReason(absl::Time now) const {
  if (!state_.failure_reason.empty()) return state_.failure_reason;
  return now - results_.last <= kResultsFailureMemory ? results_.failure_reason : "";
}

}  // namespace hone::tracker
