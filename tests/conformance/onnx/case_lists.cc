// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/onnx/case_lists.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_replace.h"
#include "fmt/format.h"

namespace hone::conformance {
namespace {

absl::Status WriteList(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(fmt::format("cannot write {}", path));
}

// Returns the lines of the file without comments.
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(fmt::format("cannot open the list of cases {}", path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

// The explanation whose key is the longest prefix of the case's name; "" if there is none.
std::string ExplanationOf(const std::string& name, const std::map<std::string, std::string>& explanations) {
  std::string found;  // keys ascend, so longer prefixes come later
  for (const auto& [prefix, text] : explanations) {
    if (name.starts_with(prefix)) found = text;
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadCaseList(const std::string& path) {
  absl::StatusOr<std::vector<std::string>> lines = ReadLines(path);
  if (!lines.ok()) return lines.status();
  for (std::string& line : *lines) line.resize(std::min(line.find(':'), line.size()));
  return lines;
}

std::string ReasonOf(const absl::Status& result) {
  return absl::StrReplaceAll(std::string(result.message()), {{"\n", " "}});
}

absl::StatusOr<std::map<std::string, std::string>> ReadReasons(const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> lines = ReadLines(path);
  if (!lines.ok()) return lines.status();
  std::map<std::string, std::string> reasons;
  for (const std::string& line : *lines) {
    const size_t colon = line.find(": ");
    reasons[line.substr(0, colon)] = colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return reasons;
}

absl::Status WriteCaseLists(const std::string& folder, const std::map<std::string, absl::Status>& results) {
  const auto passed = std::count_if(results.begin(), results.end(), [](const auto& r) { return r.second.ok(); });
  const auto failed = static_cast<long>(results.size()) - passed;
  std::string supported = fmt::format(
      "# The {} ONNX conformance cases that pass. One that fails, fails the tests. Written by --bless.\n", passed);
  std::string unsupported = fmt::format("# The {} ONNX conformance cases that do not pass, and why.\n", failed);
  const auto explanations = ReadReasons(folder + "/explanations.txt");
  std::string told;  // the explanation of the case before
  for (const auto& [name, status] : results) {
    if (status.ok()) {
      supported += name + "\n";
      continue;
    }
    const std::string explanation = explanations.ok() ? ExplanationOf(name, *explanations) : "";
    if (!explanation.empty() && explanation != told) unsupported += fmt::format("# {}\n", explanation);
    told = explanation;
    unsupported += fmt::format("{}: {}\n", name, ReasonOf(status));
  }
  if (absl::Status status = WriteList(folder + "/supported.txt", supported); !status.ok()) return status;
  return WriteList(folder + "/unsupported.txt", unsupported);
}

}  // namespace hone::conformance
