// SPDX-License-Identifier: Apache-2.0
// Parses durations of options: "90s", "10m", "1h30m", "30d".
#ifndef HONE_BASE_PARSE_DURATION_H_
#define HONE_BASE_PARSE_DURATION_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace hone {

// A finite duration of more than nothing; nullopt if `text` is none. absl::ParseDuration knows no days, which stand
// here for 24 hours, and alone.
inline std::optional<absl::Duration> ParsePositiveDuration(const std::string& text) {
  const bool days = !text.empty() && text.back() == 'd';
  absl::Duration duration;
  if (!absl::ParseDuration(days ? text.substr(0, text.size() - 1) + "h" : text, &duration)) return std::nullopt;
  if (days) duration *= 24;
  if (duration < absl::Nanoseconds(1) || duration == absl::InfiniteDuration()) return std::nullopt;
  return duration;
}

}  // namespace hone

#endif  // HONE_BASE_PARSE_DURATION_H_
