// SPDX-License-Identifier: Apache-2.0
#include "files/chunk_list.h"

#include <fmt/format.h>

#include <charconv>

#include "base/digest.h"
#include "base/one_line.h"

namespace hone::files {
namespace {

constexpr std::string_view kHead = "hone-chunks 1\nowner ", kHolder = "holder ", kSum = "sum ";

// The line before the next end of line, which is removed from `text` too. nullopt: there is no end of line.
std::optional<std::string_view> TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::optional<ChunkName> ParseChunk(std::string_view line) {
  constexpr size_t kDigits = 2 * sizeof(Sha256Digest);
  if (line.size() < kDigits + 2 || line[kDigits] != ' ') return std::nullopt;
  const std::optional<Sha256Digest> digest = ParseSha256Hex(line.substr(0, kDigits));
  if (!digest.has_value()) return std::nullopt;
  ChunkName chunk{*digest, 0};
  const char* end = line.data() + line.size();
  const auto [after, error] = std::from_chars(line.data() + kDigits + 1, end, chunk.bytes);
  if (error != std::errc() || after != end) return std::nullopt;
  return chunk;
}

}  // namespace

std::string ToText(const ChunkList& list) {
  std::string text(kHead);
  text += OneLine(list.of.owner) + "\n";
  for (const std::string& holder : list.of.holders) text += fmt::format("{}{}\n", kHolder, OneLine(holder));
  for (const ChunkName& chunk : list.chunks) text += fmt::format("{} {}\n", Hex(chunk.digest), chunk.bytes);
  return text + fmt::format("{}{}\n", kSum, Sha256Hex(text));
}

std::optional<ChunkList> ParseChunkList(std::string_view text) {
  const size_t sum = text.rfind(kSum);
  if (sum == std::string_view::npos || !text.starts_with(kHead)) return std::nullopt;
  if (text.substr(sum) != fmt::format("{}{}\n", kSum, Sha256Hex(text.substr(0, sum)))) return std::nullopt;
  text = text.substr(kHead.size(), sum - kHead.size());
  ChunkList list;
  const auto owner = TakeLine(text);
  if (!owner.has_value()) return std::nullopt;
  list.of.owner = *owner;
  while (!text.empty()) {
    const auto line = TakeLine(text);
    if (line.has_value() && line->starts_with(kHolder) && list.chunks.empty()) {
      list.of.holders.emplace(line->substr(kHolder.size()));
      continue;
    }
    const auto chunk = line.has_value() ? ParseChunk(*line) : std::nullopt;
    if (!chunk.has_value()) return std::nullopt;
    list.chunks.push_back(*chunk);
  }
  return list;
}

}  // namespace hone::files
