// SPDX-License-Identifier: Apache-2.0
#include "cli/quantity_text.h"

#include <fmt/format.h>

#include <utility>

namespace hone::cli {

std::string Latency(double seconds) {
  constexpr std::pair<double, const char*> kUnits[] = {{1e9, "ns"}, {1e6, "us"}, {1e3, "ms"}};
  const auto digits = [](double value) { return value < 9.995 ? 2 : value < 99.95 ? 1 : 0; };
  for (const auto& [per_second, unit] : kUnits) {
    const double value = seconds * per_second;
    if (value < 999.5) return fmt::format("{:.{}f} {}", value, digits(value), unit);
  }
  return fmt::format("{:.{}f} s", seconds, digits(seconds));
}

std::string BytesText(double bytes) {
  if (bytes < 999.5) return fmt::format("{:.0f} bytes", bytes);
  constexpr std::pair<double, const char*> kUnits[] = {{1e3, "kB"}, {1e6, "MB"}};
  for (const auto& [size, unit] : kUnits) {
    if (bytes < 999.95 * size) return fmt::format("{:.1f} {}", bytes / size, unit);
  }
  return fmt::format("{:.1f} GB", bytes / 1e9);
}

}  // namespace hone::cli
