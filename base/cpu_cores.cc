// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_cores.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>

#include "base/machine_files.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace hone {
namespace {

constexpr double kAlike = 0.8;  // the fraction of the fastest core's speed from which a core is in its group

std::string FolderOf(const std::string& root, int cpu) {
  return root + "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
}

// The relative speed of each CPU, from the kernel's file `file` of the CPU. Empty if a CPU has no such file.
std::map<int, double> SpeedsIn(const std::vector<int>& usable, const std::string& root, const std::string& file) {
  std::map<int, double> speeds;
  for (const int cpu : usable) {
    const double speed = std::atof(FirstLine(FolderOf(root, cpu) + file).c_str());
    if (speed <= 0) return {};
    speeds[cpu] = speed;
  }
  return speeds;
}

// The relative speeds on a hybrid processor of Intel, whose kernel lists the fast and the slow cores. Their clocks
// alone do not show the difference. Empty on other processors.
std::map<int, double> HybridSpeeds(const std::vector<int>& usable, const std::string& root) {
  const std::set<int> fast = ParseCpuList(FirstLine(root + "sys/devices/cpu_core/cpus"));
  const std::set<int> slow = ParseCpuList(FirstLine(root + "sys/devices/cpu_atom/cpus"));
  if (fast.empty() || slow.empty()) return {};
  std::map<int, double> speeds;
  for (const int cpu : usable) speeds[cpu] = fast.contains(cpu) ? 3 : slow.contains(cpu) ? 2 : 1;
  return speeds;
}

std::map<int, double> SpeedsOf(const std::vector<int>& usable, const std::string& root) {
  if (auto speeds = HybridSpeeds(usable, root); !speeds.empty()) return speeds;
  if (auto speeds = SpeedsIn(usable, root, "cpu_capacity"); !speeds.empty()) return speeds;
  if (auto speeds = SpeedsIn(usable, root, "cpufreq/cpuinfo_max_freq"); !speeds.empty()) return speeds;
  std::map<int, double> alike;
  for (const int cpu : usable) alike[cpu] = 1;
  return alike;
}

#ifdef __linux__
bool SetCpus(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}
#else
bool SetCpus(const std::vector<int>&) { return false; }
#endif

}  // namespace

std::vector<int> CoreGroup::Cpus() const {
  std::vector<int> cpus = cores;
  cpus.insert(cpus.end(), siblings.begin(), siblings.end());
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

std::vector<int> UsableCpus() {
  std::vector<int> cpus;
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
#endif
  return cpus;
}

std::vector<CoreGroup> FindCoreGroups(const std::vector<int>& usable, const std::string& root) {
  const std::map<int, double> speeds = SpeedsOf(usable, root);
  std::vector<int> by_speed = usable;
  std::stable_sort(by_speed.begin(), by_speed.end(), [&](int a, int b) { return speeds.at(a) > speeds.at(b); });
  std::vector<CoreGroup> groups;
  std::set<int> cores_seen;  // the lowest usable CPU of each core
  double fastest = 0;
  for (const int cpu : by_speed) {
    if (groups.empty() || speeds.at(cpu) < kAlike * fastest) {
      groups.emplace_back();
      fastest = speeds.at(cpu);
    }
    int lowest = cpu;
    for (const int sibling : ParseCpuList(FirstLine(FolderOf(root, cpu) + "topology/thread_siblings_list"))) {
      if (sibling < lowest && speeds.contains(sibling)) lowest = sibling;
    }
    (cores_seen.insert(lowest).second ? groups.back().cores : groups.back().siblings).push_back(cpu);
  }
  for (CoreGroup& group : groups) {
    std::sort(group.cores.begin(), group.cores.end());
    std::sort(group.siblings.begin(), group.siblings.end());
  }
  return groups;
}

int LoopThreads(const CoreGroup& group, double cpus) {
  return static_cast<int>(std::min(static_cast<double>(group.cores.size()), std::ceil(cpus)));
}

ScopedCpuAffinity::ScopedCpuAffinity(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  before_ = UsableCpus();
  if (before_ == cpus || !SetCpus(cpus)) before_.clear();
}

ScopedCpuAffinity::~ScopedCpuAffinity() {
  if (!before_.empty()) SetCpus(before_);
}

void SetCpuAffinity(const std::vector<int>& cpus) {
  if (!cpus.empty()) SetCpus(cpus);
}

}  // namespace hone
