// SPDX-License-Identifier: Apache-2.0
// Tables as RFC 4180 has them: commas, a line of names first, quotes where a value has commas, quotes or line ends.
#ifndef HONE_CLI_CSV_H_
#define HONE_CLI_CSV_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// With its end.
std::string CsvLine(const std::vector<std::string>& values);

// Prints a list of objects that have the same fields, which are the columns. Null is empty. like: an object with these
// fields, whose names come first, also where there is no row.
absl::Status PrintCsv(const nlohmann::ordered_json& rows, const nlohmann::ordered_json& like);

}  // namespace hone::cli

#endif  // HONE_CLI_CSV_H_
