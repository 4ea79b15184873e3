// SPDX-License-Identifier: Apache-2.0
#include "cli/shape_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "cli/command.h"

namespace hone::cli {
namespace {

// Parses a number at the start of the text and removes it; false if there is none.
bool TakeNumber(std::string_view& text, int64_t* number) {
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error != std::errc() || *number < 0) return false;
  text.remove_prefix(static_cast<size_t>(last - text.data()));
  return true;
}

bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Parses one dimension: "128", "1..512" or "224..640:32".
absl::StatusOr<graph::DimRange> ParseDimension(std::string_view text) {
  const std::string whole(text);
  graph::DimRange range;
  bool valid = TakeNumber(text, &range.min);
  range.max = range.min;
  if (valid && Take(text, "..")) valid = TakeNumber(text, &range.max);
  if (valid && Take(text, ":")) valid = TakeNumber(text, &range.step);
  if (valid && text.empty()) return range;
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not a dimension; write a number, a range 1..512, or a range in steps 224..640:32", whole));
}

}  // namespace

absl::StatusOr<NamedText> SplitName(std::string_view option, const std::string& text, std::string_view form) {
  std::optional<NamedText> named = run::SplitName(text);
  if (named.has_value()) return *std::move(named);
  return UsageError(fmt::format("{} {}: the name of the input is missing; write {}", option, text, form));
}

absl::StatusOr<std::vector<graph::DimRange>> ParseShape(std::string_view option, std::string_view shape,
                                                        const std::string& text) {
  std::vector<graph::DimRange> ranges;
  while (!shape.empty()) {
    const size_t end = std::min(shape.find(','), shape.size());
    const absl::StatusOr<graph::DimRange> range = ParseDimension(shape.substr(0, end));
    if (!range.ok()) return UsageError(fmt::format("{} {}: {}", option, text, std::string(range.status().message())));
    ranges.push_back(*range);
    shape.remove_prefix(std::min(end + 1, shape.size()));
  }
  return ranges;
}

}  // namespace hone::cli
