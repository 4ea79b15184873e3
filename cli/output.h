// SPDX-License-Identifier: Apache-2.0
// Prints the results and messages of commands. Results go to standard output, as one JSON document or text. Incomplete
// results must not look like success, so these functions report write errors. Messages go to standard error; a message
// that cannot be written does not stop the command. The text contains untrusted names of models, jobs and devices.
// They must not be able to send control characters to a terminal, or to end a row of a table.
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

// The text with control characters, except tabs and newlines, replaced by '?', and invalid UTF-8 replaced by U+FFFD.
std::string Printable(std::string_view text);

// The name of a file without its folder, as one line of printable text. A file name may contain any bytes.
std::string FileNameOf(const std::string& path);

// Writes the text to standard output; to a terminal as Printable. kUnavailable: not all of it could be written, because
// of a full disk or a closed pipe. PrintJson prints `document` in the same way.
absl::Status PrintText(const std::string& text);
absl::Status PrintJson(const nlohmann::ordered_json& document);

// A row of a table. It is one line, whatever text is in its cells.
template <typename... Cells>
std::string Row(fmt::format_string<Cells...> format, Cells&&... cells) {
  return OneLine(fmt::format(format, std::forward<Cells>(cells)...)) + "\n";
}

// Writes the text to standard error, as Printable. Errors are ignored.
void PrintMessage(std::string_view text);

// Usage error if the file `output`, which is to be written, is one of the input files: its contents would be lost.
// Empty and missing paths in `inputs` are ignored.
absl::Status CheckNotAnInput(const std::string& output, const std::vector<std::string>& inputs);

// Checks that the file `output` can be created, so that a command can fail before its work and not after it. Leaves no
// file behind. Errors: those of AtomicFile::Create (deploy/package/atomic_file.h); kFailedPrecondition for a folder.
absl::Status CheckCanCreate(const std::string& output);

}  // namespace hone::cli

#endif  // HONE_CLI_OUTPUT_H_
