#include "base/machine_files.h"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace hone {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
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
  std::sscanf(text.c_str(), "%ld%c", &number, &unit);
  return unit == 'K' ? number << 10 : unit == 'M' ? number << 20 : number;
}

}  // namespace hone
