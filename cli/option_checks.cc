// SPDX-License-Identifier: Apache-2.0
#include "cli/option_checks.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "CLI/CLI.hpp"
#include "base/parse_duration.h"

namespace hone::cli {

std::string NotEmpty(const std::string& text) {
  return text.empty() ? "the value is empty, perhaps from an unset variable; give a value, or leave the option out"
                      : "";
}

std::string NotDash(const std::string& text) {
  return text == "-" ? "- does not mean standard output here; name a file (./- for a file of that name)" : "";
}

std::function<std::string(const std::string&)> IntegerInRange(uint64_t max, uint64_t min) {
  return [max, min](const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size() && (text.size() == 1 || text[0] != '0');
    if (whole && value >= min && value <= max) return std::string();
    return fmt::format("{} is not a whole number from {} to {}{}", text, min, max,
                       text.size() > 1 && text[0] == '0' ? ", written without leading zeros" : "");
  };
}

std::string NoNan(const std::string& text) {
  return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is not a number" : "";
}

std::string DurationAsSeconds(std::string& text) {
  const std::optional<absl::Duration> duration = ParsePositiveDuration(text);
  if (duration.has_value()) text = fmt::format("{}", absl::ToDoubleSeconds(*duration));
  return "";
}

std::string WithoutPercentSign(std::string& text) {
  if (text.ends_with('%')) text.pop_back();
  return "";
}

void AddFallbackTo(CLI::App* command, std::string& fallback, const std::string& text) {
  command->add_option("--fallback", fallback, text + "; the only value is onnxruntime")
      ->check([](const std::string& value) {
        return value == "onnxruntime" ? "" : fmt::format("{} is no fallback; the only one is onnxruntime", value);
      });
}

}  // namespace hone::cli
