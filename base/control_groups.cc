// SPDX-License-Identifier: Apache-2.0
#include "base/control_groups.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/machine_files.h"

namespace hone {

std::vector<std::filesystem::path> ControlGroupFolders(const std::string& controller, const std::string& root) {
  std::vector<std::filesystem::path> folders;
  std::ifstream file(root + "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "0::/a/b" of version 2, "4:cpu,cpuacct:/a/b" of version 1
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool version_1 = controllers != ",,";
    if (version_1 && controllers.find(',' + controller + ',') == std::string::npos) continue;
    const std::filesystem::path top = root + "sys/fs/cgroup/" + (version_1 ? controller : "");
    std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (; !group.empty(); group = group.parent_path()) {
      const std::string name = group.filename().string();
      const bool of_agent = name.starts_with("hone-") && name.find_first_of("0123456789") == 5;
      if (!of_agent) folders.push_back(top / group);
    }
    folders.push_back(top);
  }
  return folders;
}

double GroupCpuQuota(const std::filesystem::path& group) {
  // The quota and the period, both in microseconds. Version 2 has them in one file, version 1 in two.
  std::istringstream words(FirstLine(group / "cpu.max") + FirstLine(group / "cpu.cfs_quota_us") + " " +
                           FirstLine(group / "cpu.cfs_period_us"));
  double quota = 0, period = 0;
  const bool limited = words >> quota >> period && quota > 0 && period > 0;
  return limited ? quota / period : std::numeric_limits<double>::infinity();
}

double ProcessCpuQuota(const std::string& root) {
  double cpus = std::numeric_limits<double>::infinity();
  for (const std::filesystem::path& group : ControlGroupFolders("cpu", root))
    cpus = std::min(cpus, GroupCpuQuota(group));
  return cpus;
}

int64_t UsableMemory(const std::string& root) {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  for (const std::filesystem::path& group : ControlGroupFolders("memory", root)) {
    for (const char* name : {"memory.max", "memory.limit_in_bytes"}) {
      if (const int64_t most = ParseSize(FirstLine(group / name)); most > 0) bytes = std::min(bytes, most);
    }
  }
  return bytes;
}

}  // namespace hone
