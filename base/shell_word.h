// SPDX-License-Identifier: Apache-2.0
// Quotes text for shell commands that a message suggests to the user.
#ifndef HONE_BASE_SHELL_WORD_H_
#define HONE_BASE_SHELL_WORD_H_

#include <string>
#include <string_view>

namespace hone {

// The text in a form that a shell reads as one word: unchanged if that is safe, else in single quotes.
inline std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

}  // namespace hone

#endif  // HONE_BASE_SHELL_WORD_H_
