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

// Prints a list of objects that have the same fields, which are the columns. Null is empty; an empty list prints
// nothing.
absl::Status PrintCsv(const nlohmann::ordered_json& rows);

}  // namespace hone::cli

#endif  // HONE_CLI_CSV_H_
