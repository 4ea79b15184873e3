// The small files in which the kernel describes a machine, under /proc and /sys: reading one, and its two notations.
#ifndef HONE_BASE_MACHINE_FILES_H_
#define HONE_BASE_MACHINE_FILES_H_

#include <cstdint>
#include <set>
#include <string>

namespace hone {

// Empty if there is no such file.
std::string FirstLine(const std::string& path);
// "0-3,8" to the numbers; what is no number is left out.
std::set<int> ParseCpuList(const std::string& list);
// "32K" to 32768; 0 if there is no number.
int64_t ParseSize(const std::string& text);

}  // namespace hone

#endif  // HONE_BASE_MACHINE_FILES_H_
