// SPDX-License-Identifier: Apache-2.0
// One input of a fuzzer as several pieces: cut at a mark, so that a piece may grow or shrink without harm to the
// others.
#ifndef HONE_TESTS_FUZZERS_PIECES_H_
#define HONE_TESTS_FUZZERS_PIECES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hone::fuzzers {

inline constexpr std::string_view kMark = "|~~|";

inline std::vector<std::string_view> Pieces(std::string_view input) {
  std::vector<std::string_view> pieces;
  for (size_t at; (at = input.find(kMark)) != input.npos; input.remove_prefix(at + kMark.size())) {
    pieces.push_back(input.substr(0, at));
  }
  pieces.push_back(input);
  return pieces;
}

inline std::string Join(const std::vector<std::string>& pieces) {
  std::string joined;
  for (const std::string& piece : pieces) joined.append(joined.empty() ? "" : kMark).append(piece);
  return joined;
}

}  // namespace hone::fuzzers

#endif  // HONE_TESTS_FUZZERS_PIECES_H_
