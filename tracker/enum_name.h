// SPDX-License-Identifier: Apache-2.0
// Names of the protocol's enum values for users, scripts and metrics: "queued", "wrong_output".
#ifndef HONE_TRACKER_ENUM_NAME_H_
#define HONE_TRACKER_ENUM_NAME_H_

#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "base/split.h"

namespace hone::tracker {

// The name without its prefix, in lower case: "JOB_STATE_QUEUED" without "JOB_STATE_" is "queued". The number of the
// value, if `name` is empty because only a newer program knows the value.
inline std::string EnumName(std::string_view name, std::string_view prefix, int value) {
  if (name.empty()) return std::to_string(value);
  RemovePrefix(name, prefix);
  return absl::AsciiStrToLower(std::string(name));
}

}  // namespace hone::tracker

#endif  // HONE_TRACKER_ENUM_NAME_H_
