// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/shell_word.h"

namespace hone::tracker {
namespace {

// Whether the character is plain ASCII text, which a terminal does not interpret.
bool IsShown(char c) { return c == '\n' || (c >= ' ' && c <= '~'); }

std::string Line(std::string_view text) { return fmt::format("{}{}", text, text.ends_with('\n') ? "" : "\n"); }

}  // namespace

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
  // The end mark contains the digest of the text, so no line of the text can equal it.
  const std::string end = fmt::format("END_{:.16}", Sha256Hex(text));
  return fmt::format("hone-opt - --target {} --passes=all <<'{}'\n{}{}\n", ShellWord(target), end, text, end);
}

}  // namespace hone::tracker
