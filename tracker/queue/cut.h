// SPDX-License-Identifier: Apache-2.0
// What others say in words, cut to what is kept of it; and how long names may be.
#ifndef HONE_TRACKER_QUEUE_CUT_H_
#define HONE_TRACKER_QUEUE_CUT_H_

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hone::tracker {

// Of a reason that people read: the output of a compiler fits, and a message full of it is not kept.
inline constexpr size_t kLongestReason = size_t{16} << 10;

// The beginning of UTF-8 text, at most so many bytes of it, up to the end of a character.
inline std::string Cut(std::string_view text, size_t most = kLongestReason) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return std::string(text.substr(0, most));
}

// Of what others call themselves, or things of theirs.
inline constexpr size_t kLongestName = 256;

// what: the field that has the name. kInvalidArgument.
inline absl::Status CheckLength(std::string_view what, std::string_view name) {
  if (name.size() <= kLongestName) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} '{}...' has {} bytes, and {} is the most", what, Cut(name, 40), name.size(), kLongestName));
}

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_CUT_H_
