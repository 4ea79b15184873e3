// SPDX-License-Identifier: Apache-2.0
// Splits and trims text without copying it; the parts point into the text. Abseil's functions would copy: the
// string_view of Debian's Abseil is a type of its own, which std::string_view does not convert to.
#ifndef HONE_BASE_SPLIT_H_
#define HONE_BASE_SPLIT_H_

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace hone {

// The parts between separators, empty ones included: "a,,b" has three parts, "" has one.
inline std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// The parts that are not empty: " a  b" has two at ' '.
inline std::vector<std::string_view> SplitNonEmpty(std::string_view text, char separator) {
  std::vector<std::string_view> parts = SplitAt(text, separator);
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  return parts;
}

// The text without blanks and line ends at its ends.
inline std::string_view TrimBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// Removes `prefix` from the start of `text`; false and no change if the text does not start with it.
inline bool RemovePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace hone

#endif  // HONE_BASE_SPLIT_H_
