#include "compiler/space/chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

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

int64_t Chooser::Tile(std::string_view name, int64_t extent, int64_t limit, int64_t preferred) {
  const int64_t most = std::max<int64_t>(1, std::min(extent, limit));
  std::vector<int64_t> options;
  for (int64_t t = 1; t <= most; ++t) {
    const bool power = (t & (t - 1)) == 0;
    const int64_t tiles = (extent + t - 1) / t;
    const bool tight = tiles * t == extent || (tiles * t - extent) * 16 <= extent;
    // Every size up to 16 matters for a register tile; beyond, few do.
    if (power || (tight && (t <= 16 || extent % t == 0)) || t == most) options.push_back(t);
  }
  return OneOf(name, std::move(options), preferred);
}

std::string Print(const Decisions& decisions) {
  std::string text;
  for (const Decision& d : decisions) text += fmt::format("{}{}={}", text.empty() ? "" : " ", d.name, d.value);
  return text;
}

absl::StatusOr<Decisions> ParseDecisions(std::string_view text) {
  Decisions decisions;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    int64_t value = 0;
    const char* last = word.data() + word.size();
    if (equals == std::string_view::npos || std::from_chars(word.data() + equals + 1, last, value).ptr != last) {
      return absl::InvalidArgumentError(fmt::format("not a decision: '{}'", word));
    }
    decisions.push_back({std::string(word.substr(0, equals)), value, {}});
  }
  return decisions;
}

}  // namespace hone::space
