#include "cli/csv.h"

#include "cli/output.h"

namespace hone::cli {
namespace {

std::string Quoted(const std::string& value) {
  if (value.find_first_of(",\"\r\n") == std::string::npos) return value;
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string CsvLine(const std::vector<std::string>& values) {
  std::string line;
  for (const std::string& value : values) {
    if (&value != &values.front()) line += ',';
    line += Quoted(value);
  }
  return line + "\r\n";
}

absl::Status PrintCsv(const nlohmann::ordered_json& rows) {
  std::string text;
  for (const nlohmann::ordered_json& row : rows) {
    std::vector<std::string> names, values;
    for (const auto& [name, value] : row.items()) {
      names.push_back(name);
      values.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
    }
    if (text.empty()) text += CsvLine(names);
    text += CsvLine(values);
  }
  return PrintText(text);
}

}  // namespace hone::cli
