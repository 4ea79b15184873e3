// SPDX-License-Identifier: Apache-2.0
// Splits the name of an instruction, as "ld.global.nc.f32", at its dots.
#ifndef HONE_TESTS_PTX_NAMES_H_
#define HONE_TESTS_PTX_NAMES_H_

#include <algorithm>
#include <string_view>
#include <vector>

namespace hone::ptx {

inline std::vector<std::string_view> PartsOf(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = std::min(name.find('.'), name.size());
    parts.push_back(name.substr(0, end));
    if (end == name.size()) return parts;
    name.remove_prefix(end + 1);
  }
}

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_NAMES_H_
