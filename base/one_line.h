// SPDX-License-Identifier: Apache-2.0
// Makes untrusted text (names of models, files, nodes, devices) safe to print to a terminal, a table or a log.
#ifndef HONE_BASE_ONE_LINE_H_
#define HONE_BASE_ONE_LINE_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace hone {

// The length in bytes of the control character that starts at `at`; 0 if none does. Control characters are those of
// ASCII except tab and newline, those of Latin-1 (U+0080 to U+009F), and those that change the direction of writing
// (U+202A to U+202E, U+2066 to U+2069). A terminal would obey them, or show text in another order.
inline size_t ControlCharacterBytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0; };
  if (byte(0) == '\n' || byte(0) == '\t') return 0;
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  if (byte(0) != 0xe2) return 0;
  const bool turns = byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae;
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return turns || isolates ? 3 : 0;
}

// The text with each control character replaced by '?'. Tabs and newlines stay.
inline std::string ReplaceControlCharacters(std::string_view text) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const size_t control = ControlCharacterBytes(text, at);
    shown += control > 0 ? '?' : text[at];
    at += std::max<size_t>(control, 1);
  }
  return shown;
}

// As ReplaceControlCharacters, with tabs and newlines replaced as well. For a row of a table or a line of a log, so
// that a name cannot start a new column or line.
inline std::string OneLine(std::string_view text) {
  std::string line = ReplaceControlCharacters(text);
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, '?');
  return line;
}

}  // namespace hone

#endif  // HONE_BASE_ONE_LINE_H_
