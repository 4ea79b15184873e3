// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/shape_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/status.h"

namespace hone::run {
namespace {

absl::StatusOr<NamedShape> ParseNamedShape(const std::string& text) {
  const std::optional<NamedText> named = SplitName(text);
  if (!named.has_value()) {
    return absl::InvalidArgumentError(fmt::format("{}: the name of the input is missing; write name=1,128", text));
  }
  NamedShape shape{named->name, {}};
  for (std::string_view rest = named->value; !rest.empty();) {
    const std::string_view dimension = rest.substr(0, rest.find(','));
    int64_t extent = 0;
    const char* const end = dimension.data() + dimension.size();
    const auto [last, error] = std::from_chars(dimension.data(), end, extent);
    if (error != std::errc() || last != end || extent < 0) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: '{}' is not a dimension of a run; write a number (a run has no ranges)", text, std::string(dimension)));
    }
    shape.extents.push_back(extent);
    rest.remove_prefix(std::min(dimension.size() + 1, rest.size()));
  }
  return shape;
}

}  // namespace

std::optional<NamedText> SplitName(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  return NamedText{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

absl::StatusOr<std::vector<NamedShape>> ParseNamedShapes(const std::vector<std::string>& texts) {
  std::vector<NamedShape> shapes;
  for (const std::string& text : texts) {
    HONE_ASSIGN_OR_RETURN(shapes.emplace_back(), ParseNamedShape(text));
  }
  return shapes;
}

}  // namespace hone::run
