// SPDX-License-Identifier: Apache-2.0
#include "records/record.h"

#include <cmath>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "records/columns.h"

namespace hone::records {
namespace {

using nlohmann::json;

constexpr size_t kRepeatLimit = 100'000;
// Milliseconds since 1970. Messages carry times as nanoseconds in 64 bits, which end in the year 2262.
constexpr int64_t kLastInstant = std::chrono::floor<std::chrono::milliseconds>(std::chrono::nanoseconds::max()).count();

// Checks the value of one column. `status` gets the first error, which names the column as lines of JSON do.
struct Checker {
  const Column& column;
  absl::Status status;

  void operator()(const std::string& text) {
    if (PartOf<Failure>(column)) return;  // any text is accepted: the store cleans and cuts it
    if (column.range == Range::kNotEmpty && text.empty()) {
      Refuse("is empty");
    } else if (text.size() > column.limit) {
      Refuse(fmt::format("has {} bytes; the limit is {}", text.size(), column.limit));
    } else if (CleanText(text, column.limit) != text) {
      Refuse("is not UTF-8 text without zero bytes");
    }
  }
  template <typename Number>
  void CheckNumber(Number value) {
    if (InRange(column, static_cast<double>(value))) return;
    Refuse(fmt::format("is {}; it must be finite{}", value,
                       column.range == Range::kPositive      ? " and above 0"
                       : column.range == Range::kNotNegative ? " and not negative"
                                                             : ""));
  }
  void operator()(double value) { CheckNumber(value); }
  void operator()(const std::optional<double>& value) {
    if (value.has_value()) (*this)(*value);
  }
  void operator()(int64_t value) { CheckNumber(value); }
  void operator()(Instant value) {
    const int64_t time = value.time_since_epoch().count();
    CheckNumber(time);
    if (time > kLastInstant) Refuse(fmt::format("is {}; the largest allowed value is {}", time, kLastInstant));
  }
  void operator()(const std::vector<double>& values) {
    if (values.empty()) return Refuse("has no repeats; report a failure instead");
    if (values.size() > kRepeatLimit) {
      return Refuse(fmt::format("has {} repeats; the limit is {}", values.size(), kRepeatLimit));
    }
    for (const double value : values) (*this)(value);
  }
  void operator()(bool) {}
  void operator()(uint64_t) {}
  void operator()(FailureKind) {}
  void Refuse(std::string_view why) {
    if (status.ok()) status = absl::InvalidArgumentError(fmt::format("{} {}", column.json, why));
  }
};

}  // namespace

bool InRange(const Column& column, double value) {
  if (column.range == Range::kPositive && value <= 0) return false;
  if (column.range == Range::kNotNegative && value < 0) return false;
  return std::isfinite(value);
}

std::string CleanText(std::string_view text, size_t limit) {
  const std::string_view kept = text.substr(0, limit);
  // The JSON library serves as UTF-8 decoder, because it can replace invalid bytes.
  const std::string quoted = json(kept).dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  std::string clean = json::parse(quoted).get<std::string>();
  for (size_t zero = clean.find('\0'); zero != std::string::npos; zero = clean.find('\0', zero)) {
    clean.replace(zero, 1, "\xEF\xBF\xBD");
  }
  if (clean.size() > limit) {
    size_t end = limit;  // replacements made the text longer; this cut does not split a character
    while (end > 0 && (static_cast<unsigned char>(clean[end]) & 0xC0) == 0x80) --end;
    clean.resize(end);
  }
  return clean;
}

absl::Status Validate(const Record& record) {
  for (const Column& column : kColumns) {
    Checker checker{column, absl::OkStatus()};
    WithValue(record, column, [&](const auto& value) { checker(value); });
    HONE_RETURN_IF_ERROR(checker.status);
  }
  const auto* timing = std::get_if<Timing>(&record.outcome);
  if (timing != nullptr && timing->first_interleaved > static_cast<int64_t>(timing->seconds.size())) {
    return absl::InvalidArgumentError(fmt::format("timing.first_interleaved is {}, but there are only {} repeats",
                                                  timing->first_interleaved, timing->seconds.size()));
  }
  return absl::OkStatus();
}

}  // namespace hone::records
