// SPDX-License-Identifier: Apache-2.0
// What commands print. On standard output one JSON document, or text: a reader that got only half must not look like
// success, so both report what the system says. On standard error messages, which end no work where nobody takes them.
// Names that others have chosen (of models, jobs, devices) are in all of it: they must not be able to command a
// terminal, nor to end a row of a table.
#ifndef HONE_CLI_OUTPUT_H_
#define HONE_CLI_OUTPUT_H_

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/one_line.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// The text without what a terminal obeys: control characters, but for tabs and ends of lines, become '?'. What is
// not UTF-8 becomes U+FFFD.
std::string Printable(std::string_view text);

// Unavailable if standard output does not take it all (a full disk, a closed pipe). A terminal gets what is Printable.
absl::Status PrintText(const std::string& text);
absl::Status PrintJson(const nlohmann::ordered_json& document);

// A row of a table: one line, whatever is in its cells.
template <typename... Cells>
std::string Row(fmt::format_string<Cells...> format, Cells&&... cells) {
  return OneLine(fmt::format(format, std::forward<Cells>(cells)...)) + "\n";
}

// On standard error, for people: what is Printable of the text. Where it cannot be written, it is lost.
void PrintMessage(std::string_view text);

// A usage error where the file that is to be written is one that is read: what was in it would be lost. Of `inputs`
// those that are empty, or not there, are none.
absl::Status CheckIsNoInput(const std::string& output, const std::vector<std::string>& inputs);

// Whether the file that is to be written can be made, for before the work of which it takes the result; nothing is left
// of the attempt. Errors as of deploy/package/atomic_file.h.
absl::Status CheckCanBeMade(const std::string& output);

}  // namespace hone::cli

#endif  // HONE_CLI_OUTPUT_H_
