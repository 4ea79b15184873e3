// SPDX-License-Identifier: Apache-2.0
#include "base/machine_files.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace hone {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

const std::string& CpuinfoEntry::operator[](const std::string& name) const {
  static const std::string nothing;
  const auto found = fields.find(name);
  return found == fields.end() ? nothing : found->second;
}

std::set<std::string> CpuinfoEntry::Features() const {
  std::istringstream words((*this)["flags"] + " " + (*this)["Features"]);
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

std::vector<CpuinfoEntry> ReadCpuinfo(const std::string& root) {
  std::ifstream file(root + "proc/cpuinfo");
  std::vector<CpuinfoEntry> entries;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, line.find_last_not_of("\t ", colon - 1) + 1);
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (name == "processor") entries.push_back({std::atoi(value.c_str()), {}});
    if (!entries.empty()) entries.back().fields[name] = value;
  }
  return entries;
}

std::set<int> ParseCpuList(const std::string& list) {
  std::set<int> cpus;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0;
    const int fields = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    if (fields == 1) last = first;
    for (int cpu = first; fields > 0 && cpu <= last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

int64_t ParseSize(const std::string& text) {
  int64_t number = 0;
  char unit = 0;
  std::sscanf(text.c_str(), "%" SCNd64 "%c", &number, &unit);
  return unit == 'K' ? number << 10 : unit == 'M' ? number << 20 : number;
}

}  // namespace hone
