// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/one_line.h"
#include "base/standard_streams.h"
#include "cli/command.h"
#include "deploy/package/atomic_file.h"
#include "records/record.h"

namespace hone::cli {

std::string Printable(std::string_view text) {
  return ReplaceControlCharacters(records::CleanText(text, 3 * text.size()));
}

std::string FileNameOf(const std::string& path) {
  return OneLine(Printable(std::filesystem::path(path).filename().string()));
}

absl::Status PrintText(const std::string& given) {
  if (WriteStdout(isatty(STDOUT_FILENO) == 1 ? Printable(given) : given)) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

void PrintMessage(std::string_view text) {
  const std::string shown = Printable(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

absl::Status PrintJson(const nlohmann::ordered_json& document) {
  // Names of models and files may be invalid UTF-8. It is replaced, because the default of the library is an exception.
  return PrintText(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

absl::Status CheckNotAnInput(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    const bool regular = !input.empty() && std::filesystem::is_regular_file(input, error);
    if (!regular || !std::filesystem::equivalent(output, input, error)) continue;
    return UsageError(
        fmt::format("{} is also an input of this command and would be overwritten; write to another file", output));
  }
  return absl::OkStatus();
}

absl::Status CheckCanCreate(const std::string& output) {
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(output, error);
  if (std::filesystem::is_directory(there)) {
    return absl::FailedPreconditionError(fmt::format("cannot write '{}': it is a folder", output));
  }
  // A pipe or device is not opened: the reader of a pipe would take the close for the end of the output.
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) return absl::OkStatus();
  return package::AtomicFile::Create(output).status();
}

}  // namespace hone::cli
