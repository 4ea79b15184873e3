// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cpu/power.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/machine_files.h"

namespace hone::agent {
namespace {

constexpr int kChipsMax = 64;
constexpr int kChannelsMax = 4;  // of one INA sensor, which numbers them from 1

std::optional<double> Number(const std::string& path) {
  const std::string line = FirstLine(path);
  return line.empty() ? std::nullopt : std::optional(std::atof(line.c_str()));
}

// The watts of one channel of a chip. The kernel gives microwatts, or millivolts and milliamperes.
std::optional<double> ChannelWatts(const std::string& chip, int channel) {
  if (const auto microwatts = Number(fmt::format("{}/power{}_input", chip, channel))) return *microwatts * 1e-6;
  // The ina219 and ina226 measure the drop of their shunt as in0 and the supply as in1; the ina3221 has a supply each.
  const auto millivolts = Number(fmt::format("{}/in{}_input", chip, channel));
  const auto milliamperes = Number(fmt::format("{}/curr{}_input", chip, channel));
  if (!millivolts || !milliamperes) return std::nullopt;
  return *millivolts * *milliamperes * 1e-6;
}

}  // namespace

std::optional<double> ReadBoardWatts(const std::string& root) {
  std::optional<double> only;  // of chips with one channel
  for (int number = 0; number < kChipsMax; ++number) {
    const std::string chip = fmt::format("{}sys/class/hwmon/hwmon{}", root, number);
    const std::string name = FirstLine(chip + "/name");
    if (!name.starts_with("ina")) continue;  // or no sensor has that number
    int channels = 0;
    std::optional<double> watts;
    for (int channel = 1; channel <= kChannelsMax; ++channel) {
      const std::optional<double> one = ChannelWatts(chip, channel);
      if (!one) continue;
      if (FirstLine(fmt::format("{}/in{}_label", chip, channel)).ends_with("_IN")) return one;
      ++channels;
      watts = one;
    }
    if (channels == 1 && !only) only = watts;
  }
  return only;
}

std::optional<double> ReadPackageJoules(const std::string& root) {
  std::optional<double> joules;
  for (int number = 0; number < kChipsMax; ++number) {
    const std::string zone = fmt::format("{}sys/class/powercap/intel-rapl:{}", root, number);
    const std::string name = FirstLine(zone + "/name");
    if (name.empty()) break;
    if (!name.starts_with("package-")) continue;  // "psys" is the whole platform, with its packages
    const auto microjoules = Number(zone + "/energy_uj");
    if (!microjoules) continue;
    joules = joules.value_or(0) + *microjoules * 1e-6;
  }
  return joules;
}

}  // namespace hone::agent
