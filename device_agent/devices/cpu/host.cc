// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cpu/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "base/code_kind.h"
#include "base/cpu_features.h"
#include "base/digest.h"
#include "base/machine_files.h"
#include "base/median.h"
#include "base/roofline.h"
#include "base/thread_pool.h"
#include "device_agent/devices/cpu/power.h"
#include "device_agent/devices/cpu/reference_loop.h"

namespace hone::agent {
namespace {

// Above this temperature a board throttles or soon will.
constexpr double kTemperatureCMax = 95;
constexpr int kSelfTestLoops = 15;
constexpr std::string_view k32BitArm = FindCodeKind(CodeKind::kArm)->architecture;
#if defined(__arm__)
constexpr bool kIs32BitArm = true;
#else
constexpr bool kIs32BitArm = false;
#endif

// cpus: the CPUs of the device; empty: all.
void ReadCpus(const std::string& root, const std::vector<int>& cpus, DeviceFingerprint& fingerprint) {
  std::string arm;
  std::set<std::string> features;
  for (const CpuinfoEntry& entry : ReadCpuinfo(root)) {
    if (!cpus.empty() && std::find(cpus.begin(), cpus.end(), entry.cpu) == cpus.end()) continue;
    if (fingerprint.cpu_model.empty()) fingerprint.cpu_model = entry["model name"];
    // Arm cores are identified by three numbers: implementer, variant and part.
    for (const char* name : {"CPU implementer", "CPU variant", "CPU part"}) {
      const std::string& number = entry[name];
      if (!number.empty() && arm.size() < 30) arm += (arm.empty() ? "" : " ") + number;
    }
    if (features.empty()) features = entry.Features();
  }
  if (fingerprint.cpu_model.empty() || !arm.empty()) {
    const std::string board = FirstLine(root + "proc/device-tree/model");
    fingerprint.cpu_model = fmt::format("{}{}{}", board.substr(0, board.find('\0')), board.empty() ? "" : " ", arm);
  }
  fingerprint.cpu_features.assign(features.begin(), features.end());
}

// For an emulator of Arm, which shows the cpuinfo file of its host. That file does not describe the emulated CPU, so
// only the features of every 64-bit Arm CPU are kept.
void KeepToEmulated(DeviceFingerprint& fingerprint) {
  const std::vector<std::string>& words = fingerprint.cpu_features;
  const bool is_arm = fingerprint.architecture == "aarch64" || fingerprint.architecture == k32BitArm;
  if (!is_arm || std::find(words.begin(), words.end(), "sse2") == words.end()) return;
  fingerprint.cpu_model = "emulated on " + fingerprint.cpu_model;
  fingerprint.cpu_features = {"asimd", "fp"};
}

// A 32-bit Arm program: a 64-bit kernel reports its own architecture and its own names of features. The auxiliary
// vector lists the features that 32-bit programs may use, also in an emulator.
void DescribeFor32Bits(DeviceFingerprint& fingerprint) {
  fingerprint.cpu_features.clear();
  for (const ArmFeature& feature : kArmFeatures) {
    const unsigned long word = getauxval(feature.word == 1 ? AT_HWCAP : AT_HWCAP2);
    if ((word >> feature.bit) & 1) fingerprint.cpu_features.emplace_back(feature.cpuinfo);
  }
  std::ranges::sort(fingerprint.cpu_features);
}

void ReadCaches(const std::string& root, int cpu, DeviceFingerprint& fingerprint) {
  std::vector<CacheLevel>& caches = fingerprint.caches;
  for (int index = 0; index < 16; ++index) {
    const std::string folder = fmt::format("{}sys/devices/system/cpu/cpu{}/cache/index{}/", root, cpu, index);
    if (!std::filesystem::exists(folder)) break;
    CacheLevel cache;
    cache.level = std::atoi(FirstLine(folder + "level").c_str());
    cache.type = absl::AsciiStrToLower(FirstLine(folder + "type"));
    cache.bytes = ParseSize(FirstLine(folder + "size"));
    cache.line_bytes = std::atoi(FirstLine(folder + "coherency_line_size").c_str());
    cache.shared_by = static_cast<int>(ParseCpuList(FirstLine(folder + "shared_cpu_list")).size());
    caches.push_back(cache);
  }
  std::sort(caches.begin(), caches.end(), [](const CacheLevel& a, const CacheLevel& b) {
    return std::tuple(a.level, a.type) < std::tuple(b.level, b.type);
  });
}

std::string Word(std::string text) {
  std::string word;
  for (const char c : text) {
    if (c != ' ') word += c;
    if (c == ' ' && !word.empty() && word.back() != '-') word += '-';
  }
  return word.empty() ? "unknown" : word;
}

}  // namespace

std::string FingerprintText(const DeviceFingerprint& fingerprint) {
  std::string text = fmt::format("{} {} cores={} cpus={}", Word(fingerprint.architecture), Word(fingerprint.cpu_model),
                                 fingerprint.physical_cores, fingerprint.logical_cpus);
  if (!fingerprint.core_group.empty()) text += " group=" + fingerprint.core_group;
  for (const CacheLevel& cache : fingerprint.caches) {
    if (cache.type == "instruction") continue;
    text += fmt::format(" l{}={}/{}", cache.level, cache.bytes, cache.shared_by);
  }
  for (const std::string& feature : fingerprint.cpu_features) text += " " + feature;
  return text;
}

absl::StatusOr<ChosenCores> ChooseCores(const std::string& selector, const std::string& root) {
  const std::vector<int> usable = UsableCpus();
  const std::vector<CoreGroup> groups = FindCoreGroups(usable.empty() ? std::vector<int>{0} : usable, root);
  if (selector == "all") {
    CoreGroup all;
    for (const CoreGroup& group : groups) {
      all.cores.insert(all.cores.end(), group.cores.begin(), group.cores.end());
      all.siblings.insert(all.siblings.end(), group.siblings.begin(), group.siblings.end());
    }
    return ChosenCores{std::move(all), groups.size() == 1 ? "" : fmt::format("all/{}", groups.size())};
  }
  size_t number = 1;
  const auto [end, error] = std::from_chars(selector.data(), selector.data() + selector.size(), number);
  const bool is_number = selector.empty() || (error == std::errc() && end == selector.data() + selector.size());
  if (!is_number || number < 1 || number > groups.size()) {
    std::string kinds;
    for (size_t i = 0; i < groups.size(); ++i) {
      kinds += fmt::format("{}cpu:{} has CPUs {}", i == 0 ? "" : ", ", i + 1, fmt::join(groups[i].Cpus(), " "));
    }
    return absl::NotFoundError(fmt::format(
        "this machine has no cpu:{}; its kinds of cores, fastest first: {}; cpu:all has all cores", selector, kinds));
  }
  return ChosenCores{groups[number - 1], groups.size() == 1 ? "" : fmt::format("{}/{}", number, groups.size())};
}

void ReadEnvironment(const std::vector<int>& cpus, DeviceFingerprint& fingerprint, const std::string& root) {
  utsname name{};
  uname(&name);
  fingerprint.kernel = name.release;
  const std::vector<int> usable = cpus.empty() ? UsableCpus() : cpus;
  const int cpu = usable.empty() ? 0 : usable.front();
  const std::string cpufreq = fmt::format("{}sys/devices/system/cpu/cpu{}/cpufreq/", root, cpu);
  fingerprint.governor = FirstLine(cpufreq + "scaling_governor");
  const std::string boost = FirstLine(root + "sys/devices/system/cpu/cpufreq/boost");
  const std::string no_turbo = FirstLine(root + "sys/devices/system/cpu/intel_pstate/no_turbo");
  if (!boost.empty()) fingerprint.boost = boost == "1" ? "on" : "off";
  if (!no_turbo.empty()) fingerprint.boost = no_turbo == "0" ? "on" : "off";
  const std::string smt = FirstLine(root + "sys/devices/system/cpu/smt/active");
  if (!smt.empty()) fingerprint.smt = smt == "1" ? "on" : "off";
  const std::string pages = FirstLine(root + "sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = pages.find('['), close = pages.find(']');
  if (open < close) fingerprint.huge_pages = pages.substr(open + 1, close - open - 1);
  std::ifstream meminfo(root + "proc/meminfo");
  std::string word;
  int64_t kilobytes = 0;
  if (meminfo >> word >> kilobytes && word == "MemTotal:") fingerprint.memory_bytes = kilobytes << 10;
}

DeviceFingerprint DetectHost(const std::string& root) { return DetectHost(*ChooseCores("", root), root); }

DeviceFingerprint DetectHost(const ChosenCores& chosen, const std::string& root) {
  DeviceFingerprint fingerprint;
  utsname name{};
  uname(&name);
  fingerprint.architecture = kIs32BitArm ? k32BitArm : name.machine;
  const std::vector<int> cpus = chosen.cores.Cpus();
  ReadCpus(root, chosen.name.empty() ? std::vector<int>() : cpus, fingerprint);
  KeepToEmulated(fingerprint);
  if (kIs32BitArm) DescribeFor32Bits(fingerprint);
  fingerprint.core_group = chosen.name;
  fingerprint.logical_cpus = static_cast<int>(cpus.size());
  fingerprint.physical_cores = static_cast<int>(chosen.cores.cores.size());
  ReadCaches(root, cpus.front(), fingerprint);
  ReadEnvironment(cpus, fingerprint, root);
  fingerprint.text = FingerprintText(fingerprint);
  fingerprint.digest = Sha256Hex(fingerprint.text);
  return fingerprint;
}

Sensors ReadHostSensors(const std::string& root) {
  Sensors sensors;
  sensors.watts = ReadBoardWatts(root);
  sensors.joules = ReadPackageJoules(root);
  for (int zone = 0; zone < 64; ++zone) {
    const std::string line = FirstLine(fmt::format("{}sys/class/thermal/thermal_zone{}/temp", root, zone));
    if (line.empty()) break;
    const double celsius = std::atof(line.c_str()) / 1000;
    sensors.temperature_c = std::max(sensors.temperature_c.value_or(celsius), celsius);
  }
  for (const int cpu : UsableCpus()) {
    const std::string line =
        FirstLine(fmt::format("{}sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", root, cpu));
    if (line.empty()) break;
    const double mhz = std::atof(line.c_str()) / 1000;
    sensors.clock_mhz = std::max(sensors.clock_mhz.value_or(mhz), mhz);
  }
  return sensors;
}

SelfTestResult TestHost(int threads) {
  SelfTestResult test;
  std::vector<double> seconds;
  for (int i = 0; i < kSelfTestLoops; ++i) seconds.push_back(ReferenceLoopSeconds());
  std::sort(seconds.begin(), seconds.end());
  const double median = Median(seconds);
  test.reference_seconds = median;
  // The spread of the middle half, so that a single preemption does not count.
  test.noise = (seconds[kSelfTestLoops * 3 / 4] - seconds[kSelfTestLoops / 4]) / median;
  ThreadPool pool(threads);
  test.roofline = MeasureRoofline(pool);
  const Sensors sensors = ReadHostSensors();
  if (sensors.temperature_c) test.temperature_c = *sensors.temperature_c;
  test.passed = true;
  if (!ReferenceLoopIsRight()) {
    test.passed = false;
    test.reason = "the reference loop computes a wrong result: the device is broken";
  } else if (sensors.temperature_c.value_or(0) >= kTemperatureCMax) {
    test.passed = false;
    test.reason = fmt::format("the device is too hot: {:.0f} C; improve its cooling", *sensors.temperature_c);
  }
  return test;
}

}  // namespace hone::agent
