// What commands print on standard output: one JSON document, or text. A reader that got only half must not look like
// success, so both report what the system says. Names that others have chosen (of models, jobs, devices) are in it: on
// a terminal they must not be able to command it.
#ifndef HONE_CLI_OUTPUT_H_
#define HONE_CLI_OUTPUT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// The text without what a terminal obeys: control characters, but for tabs and ends of lines, become '?'. What is
// not UTF-8 becomes U+FFFD.
std::string Printable(std::string_view text);

// Unavailable if standard output does not take it all (a full disk, a closed pipe). A terminal gets what is Printable.
absl::Status PrintText(const std::string& text);
absl::Status PrintJson(const nlohmann::ordered_json& document);

// A usage error where the file that is to be written is one that is read: what was in it would be lost. Of `inputs`
// those that are empty, or not there, are none.
absl::Status CheckIsNoInput(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace hone::cli

#endif  // HONE_CLI_OUTPUT_H_
