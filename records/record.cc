#include "records/record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace hone::records {
namespace {

using nlohmann::json;

constexpr size_t kKeyLimit = 4096;
constexpr size_t kScheduleLimit = size_t{1} << 20;
constexpr size_t kWorkloadLimit = size_t{16} << 20;
constexpr size_t kRepeatLimit = 100'000;

constexpr std::array<std::pair<FailureKind, std::string_view>, kAllFailureKinds.size()> kNames = {{
    {FailureKind::kScheduleIllegal, "schedule_illegal"},
    {FailureKind::kCompileError, "compile_error"},
    {FailureKind::kCompileTimeout, "compile_timeout"},
    {FailureKind::kCrashed, "crashed"},
    {FailureKind::kRunTimeout, "run_timeout"},
    {FailureKind::kWrongOutput, "wrong_output"},
    {FailureKind::kOutOfBoundsWrite, "out_of_bounds_write"},
    {FailureKind::kLostDevice, "lost_device"},
}};

absl::Status CheckText(std::string_view field, const std::string& text, size_t limit, bool required) {
  if (required && text.empty()) return absl::InvalidArgumentError(fmt::format("{} is empty", field));
  if (text.size() > limit) {
    return absl::InvalidArgumentError(fmt::format("{} has {} bytes; the limit is {}", field, text.size(), limit));
  }
  if (CleanText(text, limit) != text) {
    return absl::InvalidArgumentError(fmt::format("{} is not UTF-8 text without zero bytes", field));
  }
  return absl::OkStatus();
}

absl::Status CheckPositive(std::string_view field, double value) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} is {}, and must be finite and above 0", field, value));
}

absl::Status CheckOutcome(const Timing& timing) {
  if (timing.seconds.empty()) return absl::InvalidArgumentError("the timing has no repeats; report a failure instead");
  if (timing.seconds.size() > kRepeatLimit) {
    return absl::InvalidArgumentError(
        fmt::format("the timing has {} repeats; the limit is {}", timing.seconds.size(), kRepeatLimit));
  }
  for (const double seconds : timing.seconds) HONE_RETURN_IF_ERROR(CheckPositive("a repeat's time", seconds));
  if (timing.reference_seconds.has_value()) {
    HONE_RETURN_IF_ERROR(CheckPositive("the reference kernel's time", *timing.reference_seconds));
  }
  if (timing.tolerance.has_value() && !(std::isfinite(*timing.tolerance) && *timing.tolerance >= 0)) {
    return absl::InvalidArgumentError(
        fmt::format("the tolerance is {}, and must be finite and not negative", *timing.tolerance));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view FailureKindName(FailureKind kind) {
  for (const auto& [value, name] : kNames) {
    if (value == kind) return name;
  }
  HONE_CHECK(!"a failure kind without a name");
  return {};
}

std::optional<FailureKind> FailureKindFromName(std::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

double MedianSeconds(const std::vector<double>& seconds) {
  HONE_CHECK(!seconds.empty());
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return sorted[middle - 1] + (sorted[middle] - sorted[middle - 1]) / 2;
}

std::string CleanText(std::string_view text, size_t limit) {
  const std::string_view kept = text.substr(0, limit);
  // The JSON writer is the one UTF-8 decoder at hand that replaces what is not valid.
  const std::string quoted = json(kept).dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  std::string clean = json::parse(quoted).get<std::string>();
  for (size_t zero = clean.find('\0'); zero != std::string::npos; zero = clean.find('\0', zero)) {
    clean.replace(zero, 1, "\xEF\xBF\xBD");
  }
  if (clean.size() > limit) {
    size_t end = limit;  // replacing makes text longer: cut again, at the start of a character
    while (end > 0 && (static_cast<unsigned char>(clean[end]) & 0xC0) == 0x80) --end;
    clean.resize(end);
  }
  return clean;
}

absl::Status Validate(const Record& record) {
  HONE_RETURN_IF_ERROR(CheckText("workload_digest", record.key.workload_digest, kKeyLimit, true));
  HONE_RETURN_IF_ERROR(CheckText("target", record.key.target, kKeyLimit, true));
  HONE_RETURN_IF_ERROR(CheckText("device_fingerprint", record.key.device_fingerprint, kKeyLimit, true));
  HONE_RETURN_IF_ERROR(CheckText("compiler_version", record.key.compiler_version, kKeyLimit, true));
  HONE_RETURN_IF_ERROR(CheckText("measurement_id", record.measurement_id, kKeyLimit, true));
  HONE_RETURN_IF_ERROR(CheckText("batch_id", record.batch_id, kKeyLimit, false));
  HONE_RETURN_IF_ERROR(CheckText("schedule", record.schedule, kScheduleLimit, false));
  HONE_RETURN_IF_ERROR(CheckText("decisions", record.decisions, kScheduleLimit, false));
  HONE_RETURN_IF_ERROR(CheckText("operator_label", record.operator_label, kKeyLimit, false));
  HONE_RETURN_IF_ERROR(CheckText("workload_text", record.workload_text, kWorkloadLimit, false));
  HONE_RETURN_IF_ERROR(CheckText("measured_by", record.measured_by, kKeyLimit, false));
  if (!std::isfinite(record.flops) || record.flops < 0) {
    return absl::InvalidArgumentError(fmt::format("flops is {}, and must be finite and not negative", record.flops));
  }
  if (record.temperature_celsius.has_value() && !std::isfinite(*record.temperature_celsius)) {
    return absl::InvalidArgumentError("temperature_celsius is not finite; leave it out where it is not known");
  }
  if (record.clock_hertz.has_value()) HONE_RETURN_IF_ERROR(CheckPositive("clock_hertz", *record.clock_hertz));
  if (record.measured_at.time_since_epoch().count() < 0) {
    return absl::InvalidArgumentError("measured_at is before 1970");
  }
  if (const auto* timing = std::get_if<Timing>(&record.outcome)) return CheckOutcome(*timing);
  return absl::OkStatus();
}

}  // namespace hone::records
