// SPDX-License-Identifier: Apache-2.0
#include "cli/until.h"

#include <fmt/format.h>

#include <optional>

#include "cli/command.h"

namespace hone::cli {
namespace {

int Digit(char c) { return c >= '0' && c <= '9' ? c - '0' : 100; }

// Minutes since midnight of "7:00" or "07:00".
std::optional<int> MinutesOf(const std::string& text) {
  const std::string padded = text.size() == 4 ? "0" + text : text;
  if (padded.size() != 5 || padded[2] != ':') return std::nullopt;
  const int hour = Digit(padded[0]) * 10 + Digit(padded[1]), minute = Digit(padded[3]) * 10 + Digit(padded[4]);
  if (hour > 23 || minute > 59) return std::nullopt;
  return hour * 60 + minute;
}

}  // namespace

absl::StatusOr<absl::Time> ParseUntil(const std::string& text, absl::Time now, absl::TimeZone here) {
  if (const std::optional<int> minutes = MinutesOf(text)) {
    const absl::CivilDay today = absl::ToCivilDay(now, here);
    // When clocks go back, a time of day occurs twice: the second occurrence counts once the first has passed.
    const auto on = [&](absl::CivilDay day) {
      const absl::CivilMinute shown = absl::CivilMinute(day) + *minutes;
      const absl::Time first = absl::FromCivil(shown, here);
      return first > now ? first : here.At(shown).post;
    };
    return on(today) > now ? on(today) : on(today + 1);
  }
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return UsageError(fmt::format("--until {}: write a time such as 07:00 or 2027-01-31T07:00:00+01:00", text));
  }
  if (time <= now) return UsageError(fmt::format("--until {}: this time has passed", text));
  return time;
}

}  // namespace hone::cli
