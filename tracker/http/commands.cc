#include "tracker/http/commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"

namespace hone::tracker {
namespace {

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:=").find(c) != std::string_view::npos;
}

// Whether a terminal shows it as it is.
bool IsShown(char c) { return c == '\n' || (c >= ' ' && c <= '~'); }

std::string Line(std::string_view text) { return fmt::format("{}{}", text, text.ends_with('\n') ? "" : "\n"); }

}  // namespace

std::string ShellWord(std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), IsPlain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string QueryCommand(const records::StoredRecord& stored) {
  return fmt::format("hone records query --workload {} --after {} --limit 1 --json",
                     ShellWord(stored.record.key.workload_digest), stored.row - 1);
}

std::optional<std::string> KernelCommand(const records::Record& record) {
  const std::string text =
      Line(record.workload_text) + "schedule\n" + (record.schedule.empty() ? "" : Line(record.schedule));
  const std::string& target = record.key.target;
  if (!std::all_of(text.begin(), text.end(), IsShown)) return std::nullopt;
  if (!std::all_of(target.begin(), target.end(), [](char c) { return c != '\n' && IsShown(c); })) return std::nullopt;
  // No text can have a line that is made of its own digest.
  const std::string end = fmt::format("END_{:.16}", Sha256Hex(text));
  return fmt::format("hone-opt - --target {} --passes=all <<'{}'\n{}{}\n", ShellWord(target), end, text, end);
}

}  // namespace hone::tracker
