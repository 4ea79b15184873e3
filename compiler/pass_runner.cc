// SPDX-License-Identifier: Apache-2.0
#include "compiler/pass_runner.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "base/split.h"
#include "fmt/format.h"

namespace hone {
namespace {

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::string OnOneLine(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

absl::Status CheckLegalAfter(std::string_view pass, const absl::Status& verdict) {
  if (verdict.ok()) return verdict;
  return absl::InternalError(fmt::format("the program is illegal after {}: {}", pass, Message(verdict)));
}

absl::Status WriteReproducer(const absl::Status& status, std::string_view passes, std::string_view program,
                             const ReproducerOptions& options) {
  const std::string text = fmt::format("# run: passes={}\n# {}\n{}", passes, OnOneLine(Message(status)), program);
  const std::filesystem::path path =
      std::filesystem::path(options.folder) /
      fmt::format("{}-{}.repro", passes.substr(0, passes.find(',')), Sha256Hex(text).substr(0, 12));
  std::error_code error;  // ignored: the stream below shows whether it worked
  std::filesystem::create_directories(options.folder, error);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  const std::string place = file.good() ? fmt::format("to see it again: hone-opt {} {}", path.string(), options.flags)
                                        : fmt::format("its reproducer could not be written to {}", path.string());
  return absl::Status(status.code(), fmt::format("{}; {}", Message(status), place));
}

absl::Status UnknownPassError(std::string_view name, std::string_view known) {
  std::vector<std::string_view> once;
  for (const std::string_view pass : SplitNames(known)) {
    if (std::find(once.begin(), once.end(), pass) == once.end()) once.push_back(pass);
  }
  return absl::InvalidArgumentError(
      fmt::format("there is no pass '{}' here; there are: {}, and all", name, fmt::join(once, ", ")));
}

std::vector<std::string_view> SplitNames(std::string_view list) {
  std::vector<std::string_view> names;
  for (const std::string_view part : SplitAt(list, ',')) {
    const std::string_view name = TrimBlanks(part);
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace hone
