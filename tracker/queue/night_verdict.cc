// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/night_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "base/median.h"
#include "tracker/queue/text_limits.h"

namespace hone::tracker {
namespace {

using Nights = std::vector<const v1::FleetNight*>;

constexpr double kSigmas = 3;
constexpr double kMedianDeviation = 0.6745;  // of a normal distribution, in standard deviations
constexpr size_t kDifferencesMin = 3;        // fewer differences tell nothing about how nights differ
constexpr double kClockDropMin = 0.05;       // as a fraction; clocks differ by less from night to night
constexpr double kWarmerMin = 10;            // degrees; rooms differ by less from night to night
constexpr size_t kValueBytesMax = 120;       // of a value in a cause

bool IsGood(const v1::FleetNight& night) { return WasMeasured(night) && (night.accepted() || !IsBad(night.verdict())); }

Nights First(const Nights& nights, size_t count) {
  return {nights.begin(), nights.begin() + static_cast<ptrdiff_t>(std::min(count, nights.size()))};
}

Nights Last(const Nights& nights, size_t count) {
  return {nights.end() - static_cast<ptrdiff_t>(std::min(count, nights.size())), nights.end()};
}

double MedianOf(const Nights& nights) {
  std::vector<double> seconds;
  for (const v1::FleetNight* night : nights) seconds.push_back(night->median_seconds());
  return Median(std::move(seconds));
}

// How much a night may differ from others by chance, as a fraction: three standard deviations, estimated from the
// median difference between one measured night and the next. A regression is one large difference, which does not
// move that median, so it does not hide itself. measured: the nights before.
double UsualDifference(const Nights& measured, const v1::FleetNight& tonight) {
  const Nights recent = Last(measured, kReferenceNights + 1);
  if (recent.size() <= kDifferencesMin) {
    double spread = tonight.spread();
    for (const v1::FleetNight* night : recent) spread = std::max(spread, night->spread());
    return kSigmas * spread / kMedianDeviation;
  }
  std::vector<double> differences;
  for (size_t i = 1; i < recent.size(); ++i) {
    differences.push_back(std::abs(recent[i]->median_seconds() - recent[i - 1]->median_seconds()));
  }
  return kSigmas * Median(std::move(differences)) / MedianOf(recent) / (kMedianDeviation * std::numbers::sqrt2);
}

// The median of one sensor over the nights that have it; nullopt: none has.
template <typename Has, typename Get>
std::optional<double> UsualReading(const Nights& nights, Has has, Get get) {
  std::vector<double> readings;
  for (const v1::FleetNight* night : nights) {
    if ((night->*has)()) readings.push_back((night->*get)());
  }
  return readings.empty() ? std::nullopt : std::optional(Median(std::move(readings)));
}

std::string Shown(const std::string& value) { return value.empty() ? "none" : TruncateUtf8(value, kValueBytesMax); }

// What differs between the environments of two nights, in words; nothing if one of them has no environment.
std::vector<std::string> Differences(const v1::FleetNight& before, const v1::FleetNight& now) {
  std::vector<std::string> found;
  if (!before.has_environment() || !now.has_environment()) return found;
  const auto compare = [&](const char* what, const std::string& from, const std::string& to) {
    if (from != to) found.push_back(fmt::format("the {} changed from {} to {}", what, Shown(from), Shown(to)));
  };
  const v1::RunEnvironment &old = before.environment(), &current = now.environment();
  compare("kernel", old.kernel(), current.kernel());
  compare("governor", old.governor(), current.governor());
  compare("driver", old.driver(), current.driver());
  compare("boost setting", old.boost(), current.boost());
  compare("SMT setting", old.smt(), current.smt());
  compare("huge page mode", old.huge_pages(), current.huge_pages());
  compare("version of the agent", old.agent_version(), current.agent_version());
  // A driver's version is part of the description of a GPU; it is told once.
  if (old.driver() == current.driver()) compare("device", old.device(), current.device());
  compare("target of the program that runs", before.target(), now.target());
  return found;
}

// The likely cause of a slow-down: what differs from `good`, and what the sensors show. nights: those of the reference.
std::string CauseOf(const v1::FleetNight& good, std::string_view since, const Nights& nights,
                    const v1::FleetNight& night) {
  std::vector<std::string> causes = Differences(good, night);
  for (std::string& cause : causes) cause += since;
  if (night.throttled()) {
    causes.push_back(night.has_temperature_c()
                         ? fmt::format("the device was throttled at {:.0f} C", night.temperature_c())
                         : "the device was throttled");
  }
  const auto clock = UsualReading(nights, &v1::FleetNight::has_clock_mhz, &v1::FleetNight::clock_mhz);
  if (clock.has_value() && night.has_clock_mhz() && night.clock_mhz() < *clock * (1 - kClockDropMin)) {
    causes.push_back(fmt::format("the clock was {:.0f} MHz, before {:.0f} MHz", night.clock_mhz(), *clock));
  }
  const auto heat = UsualReading(nights, &v1::FleetNight::has_temperature_c, &v1::FleetNight::temperature_c);
  if (!night.throttled() && heat.has_value() && night.has_temperature_c() &&
      night.temperature_c() > *heat + kWarmerMin) {
    causes.push_back(fmt::format("the device had {:.0f} C, before {:.0f} C", night.temperature_c(), *heat));
  }
  return causes.empty() ? "nothing that the agent reports has changed" : fmt::format("{}", fmt::join(causes, "; "));
}

// The slow-down of the last measured nights against the first good ones, if it is a drift; 0: it is none.
double SlowDriftOf(const Nights& good, const Nights& measured, double limit) {
  constexpr auto kCount = static_cast<size_t>(kDriftNights);
  if (good.size() < kCount || measured.size() < 2 * kCount) return 0;
  const Nights first = First(good, kCount);
  const double slower = MedianOf(Last(measured, kCount)) / MedianOf(first) - 1;
  return slower > limit ? slower : 0;
}

}  // namespace

NightVerdict JudgeNight(std::span<const v1::FleetNight> earlier, const v1::FleetNight& night, double slower_than) {
  if (!WasMeasured(night)) return {.verdict = v1::FLEET_VERDICT_DID_NOT_RUN, .cause = night.problem()};
  Nights good, measured, since_accepted;
  for (const v1::FleetNight& one : earlier) {
    if (one.accepted()) {
      good.clear();
      since_accepted.clear();
    }
    if (IsGood(one)) good.push_back(&one);
    if (!WasMeasured(one)) continue;
    measured.push_back(&one);
    since_accepted.push_back(&one);
  }
  if (good.empty()) return {};
  const Nights reference = Last(good, kReferenceNights);
  NightVerdict verdict{.reference_seconds = MedianOf(reference)};
  verdict.change = night.median_seconds() / verdict.reference_seconds - 1;
  const double limit = std::max(slower_than, UsualDifference(measured, night));
  if (verdict.change > limit) {
    verdict.verdict = v1::FLEET_VERDICT_SLOWER;
    verdict.cause = CauseOf(*good.back(), " since the last good night", reference, night);
    return verdict;
  }
  const std::vector<std::string> changes = Differences(*measured.back(), night);
  since_accepted.push_back(&night);
  if (const double drift = SlowDriftOf(good, since_accepted, limit); drift > 0) {
    const Nights first = First(good, kDriftNights);
    verdict.verdict = v1::FLEET_VERDICT_DRIFT;
    verdict.change = drift;
    verdict.reference_seconds = MedianOf(first);
    verdict.cause = CauseOf(*first.back(), " since the first nights", first, night);
    return verdict;
  }
  if (!changes.empty()) {
    verdict.verdict = v1::FLEET_VERDICT_CHANGED;
    verdict.cause = fmt::format("{} since the last night", fmt::join(changes, "; "));
  } else if (verdict.change < -limit) {
    verdict.verdict = v1::FLEET_VERDICT_FASTER;
    verdict.cause = "nothing that the agent reports has changed";
  }
  return verdict;
}

}  // namespace hone::tracker
