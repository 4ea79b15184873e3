// SPDX-License-Identifier: Apache-2.0
#include "tracker/storing.h"

#include <fmt/format.h>

namespace hone::tracker {
namespace {

constexpr absl::Duration kSayEvery = absl::Minutes(1);
constexpr absl::Duration kBelieved = absl::Seconds(15);  // agents bring what was refused every four

}  // namespace

std::string Storing::Note(What what, const absl::Status& stored, absl::Time now) {
  Side& side = Of(what);
  const bool was_well = Trouble(now).empty();
  if (stored.ok()) {
    if (side.trouble.empty()) return "";
    side.trouble.clear();
    if (!Trouble(now).empty()) return "";
    said_ = absl::InfinitePast();
    return fmt::format("storing works again after {}; nothing was lost",
                       absl::FormatDuration(absl::Ceil(now - side.since, absl::Seconds(1))));
  }
  if (side.trouble.empty()) side.since = now;
  side.last = now;
  side.trouble = std::string(stored.message());
  if (!was_well && now - said_ < kSayEvery) return "";
  said_ = now;
  return fmt::format("nothing can be stored, and everybody waits: {}", side.trouble);
}

std::string Storing::Trouble(absl::Time now) const {
  if (!state_.trouble.empty()) return state_.trouble;
  return now - results_.last <= kBelieved ? results_.trouble : "";
}

}  // namespace hone::tracker
