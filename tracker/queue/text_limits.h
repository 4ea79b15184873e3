// SPDX-License-Identifier: Apache-2.0
// Limits on text that other programs send: long texts are truncated, long names are refused.
#ifndef HONE_TRACKER_QUEUE_TEXT_LIMITS_H_
#define HONE_TRACKER_QUEUE_TEXT_LIMITS_H_

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hone::tracker {

// The longest error text or reason that is kept. It holds the output of a compiler.
inline constexpr size_t kReasonBytesMax = size_t{16} << 10;

// The beginning of UTF-8 text, at most bytes_max bytes. A character is kept whole or dropped.
inline std::string TruncateUtf8(std::string_view text, size_t bytes_max = kReasonBytesMax) {
  if (text.size() <= bytes_max) return std::string(text);
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0) == 0x80) --bytes_max;
  return std::string(text.substr(0, bytes_max));
}

// The longest name or id that another program may choose, for itself or for its jobs, batches and devices.
inline constexpr size_t kNameBytesMax = 256;

// kInvalidArgument: the name is longer than kNameBytesMax. what: the field that has the name, for the error text.
inline absl::Status CheckNameLength(std::string_view what, std::string_view name) {
  if (name.size() <= kNameBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} '{}...' has {} bytes; the limit is {}", what,
                                                TruncateUtf8(name, 40), name.size(), kNameBytesMax));
}

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_TEXT_LIMITS_H_
