// SPDX-License-Identifier: Apache-2.0
// The small files in which the kernel describes a machine, under /proc and /sys: reading one, its two notations, and
// /proc/cpuinfo.
#ifndef HONE_BASE_MACHINE_FILES_H_
#define HONE_BASE_MACHINE_FILES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hone {

// Empty if there is no such file.
std::string FirstLine(const std::string& path);

// What /proc/cpuinfo says of one CPU. A field that it lacks is the empty string.
struct CpuinfoEntry {
  int cpu;
  std::map<std::string, std::string> fields;

  const std::string& operator[](const std::string& name) const;
  std::set<std::string> Features() const;  // x86-64's flags, Arm's Features
};
// In the order of the file under the folder `root`; empty if there is none.
std::vector<CpuinfoEntry> ReadCpuinfo(const std::string& root);

// "0-3,8" to the numbers; what is no number is left out.
std::set<int> ParseCpuList(const std::string& list);
// "32K" to 32768; 0 if there is no number.
int64_t ParseSize(const std::string& text);

}  // namespace hone

#endif  // HONE_BASE_MACHINE_FILES_H_
