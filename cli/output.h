// What commands print on standard output: one JSON document, or text. A reader that got only half must not look like
// success, so both report what the system says.
#ifndef HONE_CLI_OUTPUT_H_
#define HONE_CLI_OUTPUT_H_

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// Unavailable if standard output does not take it all (a full disk, a closed pipe).
absl::Status PrintText(const std::string& text);
absl::Status PrintJson(const nlohmann::ordered_json& document);

}  // namespace hone::cli

#endif  // HONE_CLI_OUTPUT_H_
