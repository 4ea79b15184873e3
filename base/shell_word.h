// SPDX-License-Identifier: Apache-2.0
// Text in commands that a message tells people to paste into a shell.
#ifndef HONE_BASE_SHELL_WORD_H_
#define HONE_BASE_SHELL_WORD_H_

#include <string>
#include <string_view>

namespace hone {

// As a shell takes it for one word: quoted where it would not be one as it is.
inline std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

}  // namespace hone

#endif  // HONE_BASE_SHELL_WORD_H_
