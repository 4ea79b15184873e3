// SPDX-License-Identifier: Apache-2.0
// Texts that give an input of a run its shape: "ids=1,128".
#ifndef HONE_DEPLOY_RUN_SHAPE_TEXT_H_
#define HONE_DEPLOY_RUN_SHAPE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::run {

struct NamedText {
  std::string name, value;
};

// Splits NAME=VALUE at the last equals sign, because names of inputs may contain one. nullopt: there is no name.
std::optional<NamedText> SplitName(std::string_view text);

struct NamedShape {
  std::string name;
  std::vector<int64_t> extents;
};

// kInvalidArgument: no name, or a dimension that is no number. The message begins with the text.
absl::StatusOr<std::vector<NamedShape>> ParseNamedShapes(const std::vector<std::string>& texts);

}  // namespace hone::run

#endif  // HONE_DEPLOY_RUN_SHAPE_TEXT_H_
