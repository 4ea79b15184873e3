// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/control_groups.h"
#include "base/cpu_cores.h"
#include "base/machine_files.h"
#include "compiler/target/cpu.h"
#include "compiler/target/cpu_features.h"
#include "compiler/target/microarchitectures.h"

namespace hone::target {
namespace {

#if defined(__aarch64__)
constexpr Arch kHostArch = Arch::kAArch64;
#elif defined(__arm__)
constexpr Arch kHostArch = Arch::kArm;
#else
constexpr Arch kHostArch = Arch::kX86_64;
#endif

constexpr char kAArch64Neon[] = "asimd";  // in /proc/cpuinfo; a 32-bit kernel says "neon"

struct CpuInfo {
  Arch arch = kHostArch;
  std::map<int, CoreId> cores;  // by CPU number
  std::set<std::string> words;  // features that all cores have
  bool hypervisor = false;
};

int Number(const std::string& text) { return static_cast<int>(std::strtol(text.c_str(), nullptr, 0)); }

CpuInfo ReadCpus(const std::string& root) {
  CpuInfo info;
  bool first = true;
  for (const CpuinfoEntry& entry : ReadCpuinfo(root)) {
    const bool x86 = !entry["vendor_id"].empty();
    if (x86) info.arch = Arch::kX86_64;
    if (!entry["CPU implementer"].empty()) {
      info.arch = entry.Features().contains(kAArch64Neon) ? Arch::kAArch64 : Arch::kArm;
    }
    info.cores[entry.cpu] = x86 ? CoreId{entry["vendor_id"], Number(entry["cpu family"]), Number(entry["model"])}
                                : CoreId{entry["CPU implementer"], 0, Number(entry["CPU part"])};
    const std::set<std::string> words = entry.Features();
    if (words.empty()) continue;
    std::set<std::string> shared;
    std::set_intersection(words.begin(), words.end(), info.words.begin(), info.words.end(),
                          std::inserter(shared, shared.end()));
    info.words = first ? words : shared;
    first = false;
  }
  info.hypervisor = info.words.contains("hypervisor");
  return info;
}

// The CPUs that this thread may run on. The affinity mask may contain CPUs that the machine lacks.
std::vector<int> UsableCpus(const std::string& root, const CpuInfo& info) {
  std::ifstream file(root + "proc/thread-self/status");
  constexpr std::string_view kList = "Cpus_allowed_list:";
  std::set<int> allowed;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kList)) allowed = ParseCpuList(line.substr(kList.size()));
  }
  std::vector<int> cpus;
  for (const auto& [cpu, core] : info.cores) {
    if (allowed.empty() || allowed.contains(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

// One data cache as seen by one CPU.
struct Cache {
  int64_t bytes;
  std::set<int> shared_by;
};

std::optional<Cache> FindCache(const std::string& root, int cpu, int level) {
  for (int index = 0; index < 16; ++index) {
    const std::string folder = fmt::format("{}sys/devices/system/cpu/cpu{}/cache/index{}/", root, cpu, index);
    const std::string found = FirstLine(folder + "level");
    if (found.empty()) break;
    const int64_t bytes = ParseSize(FirstLine(folder + "size"));
    if (std::atoi(found.c_str()) != level || FirstLine(folder + "type") == "Instruction" || bytes <= 0) continue;
    Cache cache{bytes, ParseCpuList(FirstLine(folder + "shared_cpu_list"))};
    cache.shared_by.insert(cpu);
    return cache;
  }
  return std::nullopt;
}

// One core's share of a cache that several cores use. Hardware threads of one core count once.
int64_t BytesOfOneCore(const std::string& root, int cpu, const Cache& cache) {
  const size_t siblings = std::max<size_t>(
      1, ParseCpuList(FirstLine(fmt::format("{}sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", root, cpu)))
             .size());
  return cache.bytes / static_cast<int64_t>(std::max<size_t>(1, cache.shared_by.size() / siblings));
}

// The total size of all caches of a level that some of these CPUs use.
int64_t BytesOfLevel(const std::string& root, const std::vector<int>& cpus, int level) {
  std::set<std::set<int>> counted;
  int64_t bytes = 0;
  for (const int cpu : cpus) {
    const std::optional<Cache> cache = FindCache(root, cpu, level);
    if (cache && counted.insert(cache->shared_by).second) bytes += cache->bytes;
  }
  return bytes;
}

void ReadCaches(const std::string& root, const std::vector<int>& cpus, int cpu, bool hypervisor, Target* target) {
  const int64_t typical_l3 = target->memory.l3_bytes;
  if (const auto l1 = FindCache(root, cpu, 1)) target->memory.l1_bytes = BytesOfOneCore(root, cpu, *l1);
  if (const auto l2 = FindCache(root, cpu, 2)) target->memory.l2_bytes = BytesOfOneCore(root, cpu, *l2);
  int64_t last = BytesOfLevel(root, cpus, 3);
  if (last == 0) last = BytesOfLevel(root, cpus, 2);
  if (last == 0) return;
  // A virtual machine often reports the cache of a whole socket, most of which belongs to other machines. Its share is
  // limited to what its cores have in the table, or to the share of eight cores, because an unshared cache of that size
  // is common.
  const int64_t share = typical_l3 * std::max<int64_t>(8, static_cast<int64_t>(cpus.size())) / 8;
  target->memory.l3_bytes = hypervisor ? std::min(last, share) : last;
}

// Turns the description of a machine into that of an `arch` machine, for programs of that architecture on it. A 64-bit
// Arm kernel names the cores rightly, but not the features that 32-bit programs see. An emulator shows the file of its
// host, which says nothing about the emulated CPU. Returns the features that are certain.
FeatureSet DescribeAs(Arch arch, CpuInfo& info) {
  const bool same_cores = info.arch == Arch::kAArch64 && arch == Arch::kArm;
  info.arch = arch;
  FeatureSet present;
  bool first = true;
  for (auto& [cpu, core] : info.cores) {
    if (!same_cores) core = {};
    const FeatureSet features = FeaturesOf(*Identify(arch, core, {}));
    FeatureSet shared;
    std::ranges::set_intersection(features, present, std::inserter(shared, shared.end()));
    present = first ? features : shared;
    first = false;
  }
  return first ? FeaturesOf(*Identify(arch, {}, {})) : present;
}

}  // namespace

Target HostCpu() { return HostCpu("/", kHostArch); }

Target HostCpu(const std::string& root, std::optional<Arch> runs) {
  CpuInfo info = ReadCpus(root);
  FeatureSet present = FromCpuinfo(info.arch, info.words);
  if (runs.has_value() && *runs != info.arch) present = DescribeAs(*runs, info);
  const std::vector<CoreGroup> groups = FindCoreGroups(UsableCpus(root, info), root);
  const std::vector<int> cpus = groups.empty() ? std::vector<int>() : groups.front().Cpus();
  const Microarchitecture* best = Identify(info.arch, {}, present);
  int best_cpu = cpus.empty() ? 0 : cpus.front();
  double best_speed = 0;
  for (const int cpu : cpus) {
    const Microarchitecture* row = Identify(info.arch, info.cores.at(cpu), present);
    const double speed = row->core.hertz * row->core.multiply_adds;
    if (speed <= best_speed) continue;
    best = row;
    best_cpu = cpu;
    best_speed = speed;
  }
  Target target = CpuTarget(*best, present);
  target.threads = groups.empty() ? 1 : LoopThreads(groups.front(), ProcessCpuQuota(root));
  ReadCaches(root, cpus, best_cpu, info.hypervisor, &target);
  return target;
}

}  // namespace hone::target
