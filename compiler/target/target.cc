// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/roofline.h"
#include "base/status.h"
#include "compiler/target/cpu.h"
#include "compiler/target/target_text.h"

namespace hone::target {

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  const TargetText parts = Split(text);
  for (uint8_t kind = 0; const KindEntry* entry = EntryOf(Kind{kind}); ++kind) {
    if (std::ranges::find(entry->words, parts.word) != entry->words.end()) return entry->parse(parts);
  }
  return absl::InvalidArgumentError(fmt::format("target: no kind '{}'; there are {}", parts.word, TargetWords()));
}

std::string TargetWords() {
  std::vector<std::string_view> words;
  for (uint8_t kind = 0; const KindEntry* entry = EntryOf(Kind{kind}); ++kind) {
    words.insert(words.end(), entry->words.begin(), entry->words.end());
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string Print(const Target& target) {
  const KindEntry& entry = *EntryOf(target.kind);
  std::string text = entry.print(target);
  Target copy = target;
  for (const Number& number : entry.numbers(copy)) {
    text += fmt::format(" {}={}", number.name, number.small != nullptr ? *number.small : *number.large);
  }
  return text;
}

std::string_view KindName(Kind kind) { return EntryOf(kind)->words.front(); }

Target TypicalTarget(Kind kind) { return EntryOf(kind)->typical(); }

std::string DeviceSelector(const Target& target) { return EntryOf(target.kind)->device(target); }

absl::StatusOr<Roofline> MeasureRoofline(const Target& target, int threads) {
  return EntryOf(target.kind)->roofline(target, threads);
}

absl::StatusOr<Target> TargetOfDevice(std::string_view device, int threads) {
  const size_t colon = std::min(device.find(':'), device.size());
  std::string text(device.substr(0, colon));
  // For a CPU device, the part after the colon selects the CPUs; the caller runs on those (base/cpu_cores.h).
  if (colon < device.size() && text != "cpu") text += fmt::format(" -device={}", device.substr(colon + 1));
  std::replace(text.begin() + static_cast<int64_t>(std::min(text.find('='), text.size())), text.end(), ' ', '-');
  HONE_ASSIGN_OR_RETURN(Target target, ParseTarget(text));
  if (!target.facts().has_grid) target.threads = threads;
  return target;
}

bool AllowsTf32(const Target& target) {
  return std::ranges::find(target.tensor_instructions, ir::TensorInstruction::kMmaTf32) !=
         target.tensor_instructions.end();
}

bool SameMachine(const Target& a, const Target& b) {
  return a.kind == b.kind && a.arch == b.arch && a.cpu == b.cpu && a.device == b.device;
}

std::string_view MachineName(Arch arch) { return FindCodeKind(EntryOf(arch).code)->architecture; }

}  // namespace hone::target
