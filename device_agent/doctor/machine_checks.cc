// SPDX-License-Identifier: Apache-2.0
#include "device_agent/doctor/machine_checks.h"

#include <fmt/format.h>
#include <sys/timex.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "base/control_groups.h"
#include "base/cpu_cores.h"
#include "base/machine_files.h"
#include "device_agent/devices/cpu/throttling.h"

namespace hone::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kCpus[] = "sys/devices/system/cpu/";
constexpr double kLoadPerCpuBad = 1, kLoadPerCpuNote = 0.3;  // of one core
constexpr double kStolenShareMax = 0.01;                     // of all time
constexpr int64_t kSwappedBytesMax = int64_t{64} << 20;      // bytes
constexpr int64_t kFreeDiskBytesMin = int64_t{256} << 20;    // bytes
constexpr unsigned kThrottledSinceStart = 0b1101 << 16;      // bits of a Raspberry Pi's get_throttled
constexpr char kThrottledFile[] = "sys/devices/platform/soc/soc:firmware/get_throttled";

Finding Good(std::string check, std::string what) { return {std::move(check), Verdict::kGood, std::move(what), ""}; }

// "MemTotal:   1024 kB" as bytes, by name.
std::map<std::string, int64_t> ReadMeminfo(const std::string& root) {
  std::map<std::string, int64_t> memory;
  std::ifstream file(root + "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kilobytes = 0;
    if (words >> name >> kilobytes) memory[name.substr(0, name.size() - 1)] = kilobytes << 10;
  }
  return memory;
}

bool HasWord(const std::string& line, std::string_view word, char separator) {
  std::istringstream words(line);
  for (std::string each; std::getline(words, each, separator);) {
    if (each == word) return true;
  }
  return false;
}

bool HasFolder(const fs::path& folder, std::string_view prefix) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(prefix)) return true;
  }
  return false;
}

bool KernelSynchronized() {
  timex state{};
  return adjtimex(&state) != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

}  // namespace

Finding CheckGovernor(const std::string& root) {
  std::map<std::string, int> governors;
  for (int cpu = 0; cpu < 1024; ++cpu) {
    const std::string folder = fmt::format("{}{}cpu{}/", root, kCpus, cpu);
    if (!fs::exists(folder)) break;
    const std::string governor = FirstLine(folder + "cpufreq/scaling_governor");
    if (!governor.empty()) ++governors[governor];
  }
  if (governors.empty()) return Good("governor", "this system has no clock governors");
  for (const auto& [governor, count] : governors) {
    if (governor == "performance") continue;
    return {
        "governor", Verdict::kBad,
        fmt::format("{} CPUs have the governor {}: their clock speed follows the load with a delay, so timings vary",
                    count, governor),
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"};
  }
  return Good("governor", "performance");
}

Finding CheckTurbo(const std::string& root) {
  const std::string boost = FirstLine(root + kCpus + "cpufreq/boost");
  const std::string no_turbo = FirstLine(root + kCpus + "intel_pstate/no_turbo");
  const std::string what = "on: the clock speed depends on the temperature and on the number of busy cores";
  if (no_turbo == "0") {
    return {"turbo", Verdict::kNote, what, "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"};
  }
  if (no_turbo.empty() && boost == "1") {
    return {"turbo", Verdict::kNote, what, "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"};
  }
  return Good("turbo", no_turbo.empty() && boost.empty() ? "this system does not report it" : "off");
}

Finding CheckThrottling(const std::string& root) {
  const std::string fix =
      "improve the cooling and the power supply, then restart the board (on a Raspberry Pi, vcgencmd get_throttled "
      "shows the cause)";
  if (Throttling(root).IsThrottling()) return {"throttling", Verdict::kBad, "the CPUs are slowed down now", fix};
  const auto since_start = std::strtoul(FirstLine(root + kThrottledFile).c_str(), nullptr, 16);
  if ((since_start & kThrottledSinceStart) != 0) {
    return {"throttling", Verdict::kNote, "the CPUs were slowed down at least once since this board started", fix};
  }
  return Good("throttling", "none seen");
}

Finding CheckSmt(const std::string& root) {
  if (FirstLine(root + kCpus + "smt/active") != "1") return Good("smt", "every CPU is a core");
  return {"smt", Verdict::kNote,
          "two CPUs share each core: kernels get one thread for each core, but other programs may use the second",
          "echo off | sudo tee /sys/devices/system/cpu/smt/control"};
}

Finding CheckSwap(const std::string& root) {
  const std::map<std::string, int64_t> memory = ReadMeminfo(root);
  const auto at = [&](const char* name) { return memory.contains(name) ? memory.at(name) : int64_t{0}; };
  const int64_t total = at("SwapTotal"), used = total - at("SwapFree");
  if (total == 0) return Good("swap", "none");
  if (used < kSwappedBytesMax) return Good("swap", fmt::format("{} MB of it in use", used >> 20));
  return {"swap", Verdict::kBad,
          fmt::format("{} MB are swapped out: programs need more memory than this machine has", used >> 20),
          "sudo swapoff -a"};
}

Finding CheckLoad(const std::string& root) {
  const std::string line = FirstLine(root + "proc/loadavg");
  const double load = std::atof(line.c_str());
  if (load < kLoadPerCpuNote) return Good("load", "no other process uses the CPUs much");
  return {"load", load < kLoadPerCpuBad ? Verdict::kNote : Verdict::kBad,
          fmt::format("{:.1f} cores were busy in the last minute (including an agent that measures)", load),
          "ps -eo pcpu,pid,user,comm --sort=-pcpu | head    # then stop programs that are not needed"};
}

Finding CheckStolenTime(const std::string& root) {
  std::istringstream words(FirstLine(root + "proc/stat"));
  std::string cpu;
  words >> cpu;
  double all = 0, stolen = 0, value = 0;
  for (int i = 0; i < 8 && words >> value; ++i) {
    all += value;
    if (i == 7) stolen = value;
  }
  if (all <= 0 || stolen <= kStolenShareMax * all) return Good("cores", "not shared with other virtual machines");
  return {"cores", Verdict::kBad,
          fmt::format("{:.0f}% of the CPU time went to other virtual machines, which share these cores",
                      100 * stolen / all),
          "give the virtual machine cores of its own, or measure on another machine"};
}

Finding CheckQuota(const std::string& root) {
  // The command may run in another control group than the service, so both are checked.
  const double cpus =
      std::min(ProcessCpuQuota(root), GroupCpuQuota(root + "sys/fs/cgroup/system.slice/hone-agent.service"));
  const size_t usable = UsableCpus().size();
  if (cpus >= static_cast<double>(usable)) return Good("quota", "control groups do not limit CPU time");
  return {
      "quota", Verdict::kBad,
      fmt::format(
          "of {} CPUs, control groups allow only the time of {:.1f}: threads are paused in the middle of a timing",
          usable, cpus),
      "limit the CPUs instead of the CPU time: docker --cpuset-cpus, not --cpus; systemd AllowedCPUs=, not CPUQuota="};
}

Finding CheckNamespaces(const std::string& root) {
  const std::string kernel = root + "proc/sys/";
  for (const auto& [file, bad, fix] :
       {std::tuple("user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=10000"),
        std::tuple("kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        std::tuple("kernel/apparmor_restrict_unprivileged_userns", "1",
                   "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")}) {
    if (FirstLine(kernel + file) != bad) continue;
    return {"namespaces", Verdict::kBad,
            fmt::format("/proc/sys/{} is {}: kernels cannot be isolated from other processes, files and the network",
                        file, bad),
            fmt::format("{}    # to keep it, add the setting to /etc/sysctl.d/hone.conf", fix)};
  }
  if (fs::exists(kernel + "user/max_user_namespaces")) return Good("namespaces", "allowed");
  return {"namespaces", Verdict::kBad, "this system has no user namespaces",
          "use a kernel with CONFIG_USER_NS, or start the agent as root"};
}

Finding CheckLandlock(const std::string& root) {
  if (HasWord(FirstLine(root + "sys/kernel/security/lsm"), "landlock", ',')) return Good("landlock", "on");
  return {"landlock", Verdict::kNote, "off: one of the sandbox layers that protect files is missing",
          "add landlock to the boot option lsm= (Linux 5.13 or later) in /etc/default/grub, then: sudo update-grub"};
}

Finding CheckSystemCallFilter(const std::string& root) {
  if (HasWord(FirstLine(root + "proc/sys/kernel/seccomp/actions_avail"), "errno", ' ')) {
    return Good("system-calls", "can be filtered");
  }
  return {"system-calls", Verdict::kBad, "cannot be filtered: this system has no seccomp",
          "use a kernel with CONFIG_SECCOMP_FILTER"};
}

Finding CheckControlGroups(const std::string& root) {
  const std::string controllers = FirstLine(root + "sys/fs/cgroup/cgroup.controllers");
  if (controllers.empty()) {
    return {"control-groups", Verdict::kNote,
            "not version 2: the memory and tasks of kernels cannot be limited as a group",
            "boot with systemd.unified_cgroup_hierarchy=1"};
  }
  // The agent creates groups below the delegated group of the service.
  const fs::path service = root + "sys/fs/cgroup/system.slice/hone-agent.service";
  if (fs::exists(service) && !HasFolder(service, "hone-")) {
    return {"control-groups", Verdict::kNote,
            "the service hone-agent may not create groups below its own: kernels have no common limits",
            "sudo systemctl edit hone-agent    # [Service] and Delegate=yes, then: sudo systemctl restart hone-agent"};
  }
  if (HasWord(controllers, "memory", ' ') && HasWord(controllers, "pids", ' '))
    return Good("control-groups", "limit memory and tasks");
  return {"control-groups", Verdict::kNote, "cannot limit memory or tasks on this system",
          "boot with cgroup_enable=memory (Raspberry Pi: /boot/firmware/cmdline.txt)"};
}

Finding CheckClock(bool synchronized) {
  if (synchronized) return Good("clock", "synchronized");
  return {"clock", Verdict::kBad, "not synchronized: certificates and --until depend on the clock",
          "sudo timedatectl set-ntp true"};
}

Finding CheckDisk(const std::string& folder, int64_t free_bytes) {
  const std::string what = fmt::format("{} MB free for {}", free_bytes >> 20, folder);
  if (free_bytes >= kFreeDiskBytesMin) return Good("disk", what);
  return {"disk", Verdict::kBad, what + ": results that wait for the tracker may not fit",
          "sudo journalctl --vacuum-size=50M; sudo apt-get clean"};
}

std::vector<Finding> CheckMachine(const std::string& folder) {
  std::vector<Finding> findings;
  for (const auto check : {CheckGovernor, CheckTurbo, CheckThrottling, CheckSmt, CheckSwap, CheckLoad, CheckStolenTime,
                           CheckQuota, CheckNamespaces, CheckLandlock, CheckSystemCallFilter, CheckControlGroups}) {
    findings.push_back(check("/"));
  }
  findings.push_back(CheckClock(KernelSynchronized()));
  fs::path existing = folder;
  while (!existing.empty() && !fs::exists(existing) && existing != existing.parent_path())
    existing = existing.parent_path();
  std::error_code error;
  const fs::space_info space = fs::space(existing, error);
  if (!error) findings.push_back(CheckDisk(folder, static_cast<int64_t>(space.available)));
  return findings;
}

}  // namespace hone::agent
