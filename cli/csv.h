// SPDX-License-Identifier: Apache-2.0
// Prints tables as CSV (RFC 4180): a first line of names, and quotes around values with commas or quotes. A line end in
// a value is printed as \n, so that every row is one line.
#ifndef HONE_CLI_CSV_H_
#define HONE_CLI_CSV_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

// One line, including its line end.
std::string CsvLine(const std::vector<std::string>& values);

// Prints a JSON list of objects as a table. All objects have the same fields, which are the columns; null becomes an
// empty value. like: any object with these fields; its names are the first line, even if `rows` is empty.
absl::Status PrintCsv(const nlohmann::ordered_json& rows, const nlohmann::ordered_json& like);

}  // namespace hone::cli

#endif  // HONE_CLI_CSV_H_
