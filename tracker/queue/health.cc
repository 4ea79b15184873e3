// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "base/median.h"
#include "proto/convert.h"

namespace hone::tracker {
namespace {

constexpr int kCountedProcesses = 8;  // processes of an agent whose checks are remembered; older ones call no more

// Begins a quarantine. Its length doubles with every quarantine, until batches_to_forget_quarantines were measured.
void Quarantine(v1::HealthRecord& health, const std::string& why, absl::Duration wait, absl::Time now,
                const DeviceOptions& options) {
  health.set_quarantines(health.quarantines() + 1);
  health.set_batches_since(0);
  for (int i = 1; i < health.quarantines() && wait < options.quarantine_max; ++i) wait *= 2;
  health.set_quarantine_reason(why);
  *health.mutable_quarantined_since() = ToProto(now);
  *health.mutable_retry_at() = ToProto(now + std::min(wait, options.quarantine_max));
}

// Ends a quarantine. A single further failure begins the next one.
void EndQuarantine(v1::HealthRecord& health, const DeviceOptions& options) {
  health.clear_quarantine_reason();
  health.clear_quarantined_since();
  health.clear_retry_at();
  health.set_troubles(options.failures_to_quarantine - 1);
  health.set_drifts(0);
}

// Appends one batch to the bit mask of the newest batches; a set bit is a failure.
void Note(v1::HealthRecord& health, bool failed, const DeviceOptions& options) {
  const uint64_t newest = (uint64_t{1} << options.recent_batches) - 1;
  const uint64_t noted = uint64_t{health.recent_troubles()} << 1 | (failed ? 1 : 0);
  health.set_recent_troubles(static_cast<uint32_t>(noted & newest));
}

// A device in quarantine gets no new one before the check that may end it.
bool MayBeQuarantined(const v1::HealthRecord& health, absl::Time now) {
  return !IsQuarantined(health) || now >= FromProto(health.retry_at());
}

// The relative difference of the check from the baseline if it counts as drift; else 0.
double DriftOf(const v1::HealthRecord& health, const v1::GoldenCheck& check, const DeviceOptions& options) {
  const Baseline baseline = BaselineOf(health);
  if (health.golden_seconds_size() < options.baseline_checks_min || health.golden_kernel() != check.kernel()) return 0;
  const double off = check.median_seconds() - baseline.median;
  const double allowed = std::max(options.drift_of_median * baseline.median, options.drift_in_mads * baseline.mad);
  return std::abs(off) > allowed ? off / baseline.median : 0;
}

// Adds the check to the baseline. A new golden kernel begins a new baseline.
void Learn(v1::HealthRecord& health, const v1::GoldenCheck& check, const DeviceOptions& options) {
  if (health.golden_kernel() != check.kernel()) health.clear_golden_seconds();
  health.set_golden_kernel(check.kernel());
  auto& seconds = *health.mutable_golden_seconds();
  seconds.Add(check.median_seconds());
  if (seconds.size() > static_cast<int>(options.baseline_checks)) seconds.erase(seconds.begin());
}

void EndCooling(v1::HealthRecord& health) {
  health.clear_cooling_reason();
  health.clear_cooling_since();
}

// The device is still too hot, or hot again: notes since when, and begins a quarantine after cooling_max.
void KeepCooling(v1::HealthRecord& health, absl::Time now, const DeviceOptions& options) {
  if (!health.has_cooling_since() || FromProto(health.cooling_since()) > now) {
    *health.mutable_cooling_since() = ToProto(now);
  }
  const absl::Duration waited = now - FromProto(health.cooling_since());
  if (waited < options.cooling_max || !MayBeQuarantined(health, now)) return;
  Quarantine(health,
             fmt::format("it has not cooled down in {}: {}; check its cooling and power",
                         absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))), health.cooling_reason()),
             options.first_quarantine, now, options);
}

}  // namespace

void CountMeasured(v1::HealthRecord& health, const DeviceOptions& options) {
  health.set_troubles(0);
  Note(health, false, options);
  if (health.quarantines() == 0) return;
  health.set_batches_since(health.batches_since() + 1);
  if (health.batches_since() < options.batches_to_forget_quarantines) return;
  health.set_quarantines(0);
  health.set_batches_since(0);
}

void CountFailure(v1::HealthRecord& health, const std::string& why, absl::Time now, const DeviceOptions& options) {
  health.set_troubles(health.troubles() + 1);
  Note(health, true, options);
  const int recent = std::popcount(health.recent_troubles());
  const bool in_a_row = health.troubles() >= options.failures_to_quarantine;
  if (!in_a_row && recent < options.recent_failures_to_quarantine) return;
  if (!MayBeQuarantined(health, now)) return;
  const std::string how_many =
      in_a_row ? fmt::format("{} failures in a row", health.troubles())
               : fmt::format("{} failures in its last {} batches", recent, std::bit_width(health.recent_troubles()));
  Quarantine(health, fmt::format("{}, the last: {}", how_many, why), options.first_quarantine, now, options);
}

void Forgive(v1::HealthRecord& health) {
  health.set_troubles(std::max(0, health.troubles() - 1));
  const uint32_t recent = health.recent_troubles();
  health.set_recent_troubles(recent == 0 ? 0 : recent & (recent - 1));
}

bool RememberCheck(v1::HealthRecord& health, const std::string& boot_id, const v1::GoldenCheck& check) {
  auto& counted = *health.mutable_counted();
  auto newest =
      std::find_if(counted.begin(), counted.end(), [&](const auto& known) { return known.boot_id() == boot_id; });
  if (newest == counted.end()) {
    if (counted.size() == kCountedProcesses) counted.erase(counted.begin());
    counted.Add()->set_boot_id(boot_id);
    newest = std::prev(counted.end());
  } else if (check.number() <= newest->number()) {
    return false;
  }
  newest->set_number(check.number());
  return true;
}

void ApplyCheck(v1::HealthRecord& health, const v1::GoldenCheck& check, absl::Time now, const DeviceOptions& options) {
  const bool was_cooling = !health.cooling_reason().empty();
  const double drift = check.passed() ? DriftOf(health, check, options) : 0;
  if (check.throttled()) {
    health.set_cooling_reason("it reports that it slows itself down (heat, or too little power)");
  } else {
    if (was_cooling && !check.has_temperature_c()) EndCooling(health);
    ApplyTemperature(health, check.has_temperature_c() ? std::optional(check.temperature_c()) : std::nullopt, options);
  }
  if (!check.passed()) return CountFailure(health, "its golden kernel fails: " + check.reason(), now, options);
  // A hot device is slow. Its time is neither drift nor part of the baseline.
  if (!health.cooling_reason().empty()) return KeepCooling(health, now, options);
  if (drift != 0) {
    health.set_drifts(health.drifts() + 1);
    if (health.drifts() < options.drifts_to_quarantine || !MayBeQuarantined(health, now)) return;
    const double baseline = BaselineOf(health).median;
    return Quarantine(health,
                      fmt::format("its golden kernel takes {:.1f} us, {:+.0f}% of its baseline of {:.1f} us, {} times "
                                  "in a row; check the machine, or accept the new speed with hone drain --undo",
                                  check.median_seconds() * 1e6, drift * 100, baseline * 1e6, health.drifts()),
                      options.first_drift_quarantine, now, options);
  }
  health.set_drifts(0);
  if (IsQuarantined(health)) {
    if (now < FromProto(health.retry_at())) return;
    EndQuarantine(health, options);
  }
  Learn(health, check, options);
}

void ApplyTemperature(v1::HealthRecord& health, std::optional<double> celsius, const DeviceOptions& options) {
  if (!celsius.has_value()) return;
  const double limit = health.cooling_reason().empty() ? options.hot_c : options.cool_c;
  if (*celsius >= limit) {
    health.set_cooling_reason(
        fmt::format("it is at {:.0f} C, and gets work again below {:.0f} C", *celsius, options.cool_c));
  } else {
    EndCooling(health);
  }
}

void ExcludeStallFromCooling(v1::HealthRecord& health, absl::Duration stall, absl::Time now) {
  *health.mutable_cooling_since() = ToProto(std::min(now, FromProto(health.cooling_since()) + stall));
}

void ResetHealth(v1::HealthRecord& health) {
  v1::HealthRecord released;
  *released.mutable_counted() = health.counted();
  if (health.has_known()) *released.mutable_known() = health.known();
  health = std::move(released);
}

void EndOverdueQuarantine(v1::HealthRecord& health, absl::Time now, const DeviceOptions& options) {
  if (IsQuarantined(health) && now >= FromProto(health.retry_at())) EndQuarantine(health, options);
}

bool RestartQuarantineAfterClockStep(v1::HealthRecord& health, absl::Time now) {
  if (!IsQuarantined(health) || FromProto(health.quarantined_since()) <= now) return false;
  const absl::Duration wait = FromProto(health.retry_at()) - FromProto(health.quarantined_since());
  *health.mutable_quarantined_since() = ToProto(now);
  *health.mutable_retry_at() = ToProto(now + wait);
  return true;
}

void ShiftTimes(v1::HealthRecord& health, absl::Duration ahead) {
  const auto move = [ahead](google::protobuf::Timestamp& time) { time = ToProto(FromProto(time) + ahead); };
  if (health.has_quarantined_since()) move(*health.mutable_quarantined_since());
  if (health.has_retry_at()) move(*health.mutable_retry_at());
  if (health.has_cooling_since()) move(*health.mutable_cooling_since());
}

std::string HealthProblem(const v1::HealthRecord& health, const v1::GoldenCheck* check, absl::Time now) {
  if (check != nullptr && !check->passed()) return fmt::format("its golden kernel fails: {}", check->reason());
  if (IsQuarantined(health)) {
    const absl::Duration left = FromProto(health.retry_at()) - now;
    return fmt::format("{} (tried again {})", health.quarantine_reason(),
                       left > absl::ZeroDuration()
                           ? fmt::format("in {}", absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))))
                           : "now");
  }
  return health.cooling_reason();
}

bool IsQuarantined(const v1::HealthRecord& health) { return !health.quarantine_reason().empty(); }

bool NeedsCheck(const v1::HealthRecord& health, const v1::GoldenCheck& check, absl::Time now) {
  if (IsQuarantined(health)) return now >= FromProto(health.retry_at());
  return !check.passed() || !health.cooling_reason().empty();
}

Baseline BaselineOf(const v1::HealthRecord& health) {
  if (health.golden_seconds().empty()) return {};
  std::vector<double> seconds(health.golden_seconds().begin(), health.golden_seconds().end());
  const double median = Median(seconds);
  for (double& value : seconds) value = std::abs(value - median);
  return {median, Median(seconds)};
}

}  // namespace hone::tracker
