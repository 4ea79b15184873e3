#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cli/command.h"
#include "records/record.h"

namespace hone::cli {
namespace {

// How many bytes at `at` a terminal would obey, or would show in another order than they stand in: controls of ASCII
// and of Latin-1 (U+0080 to U+009F), and those of the direction of writing (U+202A to U+202E, U+2066 to U+2069).
size_t CommandAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0; };
  if (byte(0) == '\n' || byte(0) == '\t') return 0;
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  if (byte(0) != 0xe2) return 0;
  const bool turns = byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae;
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return turns || isolates ? 3 : 0;
}

}  // namespace

std::string Printable(std::string_view text) {
  const std::string valid = records::CleanText(text, 3 * text.size());
  std::string printable;
  for (size_t at = 0; at < valid.size();) {
    const size_t command = CommandAt(valid, at);
    printable += command > 0 ? '?' : valid[at];
    at += std::max<size_t>(command, 1);
  }
  return printable;
}

absl::Status PrintText(const std::string& given) {
  const std::string text = isatty(STDOUT_FILENO) == 1 ? Printable(given) : given;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

absl::Status PrintJson(const nlohmann::ordered_json& document) {
  // Names come from models and files: what is not UTF-8 is replaced, not thrown at the user.
  return PrintText(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

absl::Status CheckIsNoInput(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    const bool regular = !input.empty() && std::filesystem::is_regular_file(input, error);
    if (!regular || !std::filesystem::equivalent(output, input, error)) continue;
    return UsageError(fmt::format("{} is read by this command, too, and would be lost; write to another file", output));
  }
  return absl::OkStatus();
}

}  // namespace hone::cli
