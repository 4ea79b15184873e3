// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cpu/throttling.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace hone::agent {
namespace {

namespace fs = std::filesystem;

// The present state in the firmware's word: undervoltage, capped clock, throttled, soft temperature limit. The same
// bits shifted by 16 report the past since boot, which does not matter here.
constexpr unsigned long kNow = 0xf;

// Prefixes of the types of cooling devices that slow processors down: "cpufreq-cpu0" and "thermal-cpufreq-0" of Linux,
// "cpu-throttle-alert" of Jetson, "Processor" of ACPI, and injected idle time. Fans are not listed.
constexpr std::array<std::string_view, 6> kSlowsProcessors = {"cpu",   "thermal-cpu",  "Processor",
                                                              "idle-", "thermal-idle", "intel_powerclamp"};

std::string ReadWord(const fs::path& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

bool FirmwareSays(const std::string& root) {
  const std::string word = ReadWord(root + "sys/devices/platform/soc/soc:firmware/get_throttled");
  return (std::strtoul(word.c_str(), nullptr, 16) & kNow) != 0;
}

bool SlowsProcessors(std::string_view type) {
  return std::ranges::any_of(kSlowsProcessors, [&](std::string_view prefix) { return type.starts_with(prefix); });
}

// Whether a cooling device of Linux slows a processor down: its state is above 0. -1 means that it is inactive.
bool IsCooledDown(const std::string& root) {
  std::error_code none;
  for (const fs::directory_entry& device : fs::directory_iterator(root + "sys/class/thermal", none)) {
    if (!device.path().filename().string().starts_with("cooling_device")) continue;
    if (!SlowsProcessors(ReadWord(device.path() / "type"))) continue;
    if (std::atol(ReadWord(device.path() / "cur_state").c_str()) > 0) return true;
  }
  return false;
}

// The sum of the throttling counters of all cores and packages. It only grows.
int64_t Interrupts(const std::string& root) {
  int64_t sum = 0;
  std::error_code none;
  for (const fs::directory_entry& cpu : fs::directory_iterator(root + "sys/devices/system/cpu", none)) {
    const std::string name = cpu.path().filename();
    if (!name.starts_with("cpu") || name.size() < 4 || !std::isdigit(static_cast<unsigned char>(name[3]))) continue;
    for (const char* counter : {"core_throttle_count", "package_throttle_count"}) {
      sum += std::atoll(ReadWord(cpu.path() / "thermal_throttle" / counter).c_str());
    }
  }
  return sum;
}

}  // namespace

Throttling::Throttling(std::string root) : root_(std::move(root)), counted_(Interrupts(root_)) {}

bool Throttling::IsThrottling() {
  const int64_t counted = Interrupts(root_);
  const bool interrupted = counted > std::exchange(counted_, counted);  // fewer: a core was taken away
  return interrupted || FirmwareSays(root_) || IsCooledDown(root_);
}

}  // namespace hone::agent
