// SPDX-License-Identifier: Apache-2.0
#include "cli/csv.h"

#include "cli/output.h"

namespace hone::cli {
namespace {

std::string Quoted(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else {
      if (c == '"') text += '"';
      text += c;
    }
  }
  return text.find_first_of(",\"") == std::string::npos ? text : '"' + text + '"';
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

absl::Status PrintCsv(const nlohmann::ordered_json& rows, const nlohmann::ordered_json& like) {
  std::vector<std::string> names;
  for (const auto& [name, value] : like.items()) names.push_back(name);
  std::string text = CsvLine(names);
  for (const nlohmann::ordered_json& row : rows) {
    std::vector<std::string> values;
    for (const nlohmann::ordered_json& value : row) {
      values.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
    }
    text += CsvLine(values);
  }
  return PrintText(text);
}

}  // namespace hone::cli
