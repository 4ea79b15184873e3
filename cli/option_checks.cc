// SPDX-License-Identifier: Apache-2.0
#include "cli/option_checks.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace hone::cli {

std::string NotEmpty(const std::string& text) {
  return text.empty() ? "it is empty, as a variable that is not set; give a value, or leave the option out" : "";
}

std::string NotDash(const std::string& text) {
  return text == "-" ? "- is not standard output here; name a file, as ./- where its name is that" : "";
}

std::function<std::string(const std::string&)> IntegerInRange(uint64_t max, uint64_t min) {
  return [max, min](const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size() && (text.size() == 1 || text[0] != '0');
    if (whole && value >= min && value <= max) return std::string();
    return fmt::format("{} is no whole number from {} to {}{}", text, min, max,
                       text.size() > 1 && text[0] == '0' ? ", written without a 0 in front" : "");
  };
}

std::string NoNan(const std::string& text) {
  return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no number" : "";
}

}  // namespace hone::cli
