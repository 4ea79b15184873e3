// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/chooser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/split.h"
#include "base/status.h"

namespace hone::space {

int64_t Chooser::OneOf(std::string_view name, std::vector<int64_t> options, int64_t preferred) {
  HONE_CHECK(!options.empty());
  std::sort(options.begin(), options.end());
  const auto nearest = [&](int64_t value) {
    return *std::min_element(options.begin(), options.end(),
                             [&](int64_t a, int64_t b) { return std::llabs(a - value) < std::llabs(b - value); });
  };
  const Decision* given = nullptr;
  if (given_ != nullptr) {
    for (const Decision& d : *given_) {
      if (d.name == name) given = &d;
    }
  }
  int64_t value = 0;
  if (given != nullptr) {
    value = nearest(given->value);
  } else if (random_ != nullptr) {
    value = options[static_cast<size_t>(random_->Below(static_cast<int64_t>(options.size())))];
  } else {
    value = nearest(preferred);
  }
  taken_.push_back({std::string(name), value, std::move(options)});
  return value;
}

int64_t Chooser::Tile(std::string_view name, const ir::Size& size, int64_t limit, int64_t preferred) {
  const int64_t extent = size.max();
  const int64_t most = std::max<int64_t>(1, std::min(extent, limit));
  std::vector<int64_t> options;
  for (int64_t t = 1; t <= most; ++t) {
    const bool power = (t & (t - 1)) == 0;
    const int64_t tiles = (extent + t - 1) / t;
    const bool tight = !size.IsFixed() || tiles * t == extent || (tiles * t - extent) * 16 <= extent;
    // A register tile tries every size up to 16. Larger sizes are tried if they divide the extent or are powers of two.
    if (power || (tight && (t <= 16 || extent % t == 0 || t == preferred)) || t == most) options.push_back(t);
  }
  return OneOf(name, std::move(options), preferred);
}

int64_t Chooser::Hinted(const std::vector<int64_t>& extents, size_t axis, int64_t fallback) const {
  return hint_ != nullptr && hint_->extents == extents ? hint_->tile[axis] : fallback;
}

std::string Print(const TileHint& hint) {
  return fmt::format("{}:{}", fmt::join(hint.extents, "x"), fmt::join(hint.tile, "x"));
}

absl::StatusOr<TileHint> ParseTileHint(std::string_view text) {
  TileHint hint;
  std::vector<int64_t>* numbers = &hint.extents;
  bool whole = !text.empty();
  for (const char* at = text.data(); whole && at != text.data() + text.size();) {
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), numbers->emplace_back());
    const char after = end == text.data() + text.size() ? '\0' : *end;
    whole = error == std::errc() && (after == '\0' || after == 'x' || (after == ':' && numbers == &hint.extents));
    if (after == ':') numbers = &hint.tile;
    at = after == '\0' ? end : end + 1;
    if (whole && after != '\0' && at == text.data() + text.size()) whole = false;
  }
  whole = whole && hint.extents.size() == hint.tile.size();
  for (size_t d = 0; whole && d < hint.tile.size(); ++d) whole = hint.tile[d] >= 1 && hint.tile[d] <= hint.extents[d];
  if (!whole)
    return absl::InvalidArgumentError(fmt::format("'{}' is not a hint for tiles; write it like 56x64:7x32", text));
  return hint;
}

std::string Print(const Decisions& decisions) {
  std::string text;
  for (const Decision& d : decisions) text += fmt::format("{}{}={}", text.empty() ? "" : " ", d.name, d.value);
  return text;
}

absl::StatusOr<Decisions> ParseDecisions(std::string_view text) {
  Decisions decisions;
  for (const std::string_view word : SplitNonEmpty(text, ' ')) {
    const size_t equals = word.find('=');
    int64_t value = 0;
    const char* last = word.data() + word.size();
    if (equals == std::string_view::npos || std::from_chars(word.data() + equals + 1, last, value).ptr != last) {
      return absl::InvalidArgumentError(fmt::format("'{}' is not a decision; write it as NAME=NUMBER", word));
    }
    decisions.push_back({std::string(word.substr(0, equals)), value, {}});
  }
  return decisions;
}

}  // namespace hone::space
