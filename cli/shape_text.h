// SPDX-License-Identifier: Apache-2.0
// Texts of shapes on the command line: "ids=1..4,128".
#ifndef HONE_CLI_SHAPE_TEXT_H_
#define HONE_CLI_SHAPE_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan.h"
#include "deploy/run/shape_text.h"

namespace hone::cli {

using run::NamedText;

// Splits NAME=VALUE at the last equals sign, because names of inputs may contain one. A usage error that shows `form`
// if there is no name.
absl::StatusOr<NamedText> SplitName(std::string_view option, const std::string& text, std::string_view form);

// Parses the dimensions of a shape, separated by commas: numbers, ranges 1..512, or ranges in steps 224..640:32. A
// usage error names the option and `text`, the whole argument, of which `shape` is a part.
absl::StatusOr<std::vector<graph::DimRange>> ParseShape(std::string_view option, std::string_view shape,
                                                        const std::string& text);

}  // namespace hone::cli

#endif  // HONE_CLI_SHAPE_TEXT_H_
