// SPDX-License-Identifier: Apache-2.0
// Readers for the small files under /proc and /sys in which the kernel describes a machine.
#ifndef HONE_BASE_MACHINE_FILES_H_
#define HONE_BASE_MACHINE_FILES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hone {

// The first line of the file, without the end of line; empty if there is no such file.
std::string FirstLine(const std::string& path);

// The section of /proc/cpuinfo about one CPU. A missing field reads as the empty string.
struct CpuinfoEntry {
  int cpu;  // the CPU's number
  std::map<std::string, std::string> fields;

  const std::string& operator[](const std::string& name) const;
  std::set<std::string> Features() const;  // the words of the field "flags" (x86-64) or "Features" (Arm)
};
// The sections in the order of the file. Empty if there is no file. root: the folder that contains proc, with a slash
// at its end.
std::vector<CpuinfoEntry> ReadCpuinfo(const std::string& root);

// The numbers of a list such as "0-3,8". Parts that are not numbers are skipped.
std::set<int> ParseCpuList(const std::string& list);
// The bytes of a size such as "32K" (32768) or "8M"; 0 if the text does not start with a number. Only K and M count as
// units: "1G" is 1.
int64_t ParseSize(const std::string& text);

}  // namespace hone

#endif  // HONE_BASE_MACHINE_FILES_H_
