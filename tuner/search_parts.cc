// SPDX-License-Identifier: Apache-2.0
#include "tuner/search_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_split.h"

namespace hone::tuner {
namespace {

struct NamedPart {
  std::string_view name;
  bool SearchParts::* part;
};

constexpr NamedPart kParts[] = {
    {"preferred", &SearchParts::preferred},   {"relatives", &SearchParts::relatives},
    {"pretrained", &SearchParts::pretrained}, {"draft", &SearchParts::draft},
    {"model", &SearchParts::model},           {"evolution", &SearchParts::evolution},
    {"descent", &SearchParts::descent},       {"scheduler", &SearchParts::scheduler},
};

}  // namespace

std::string PartNames() {
  std::vector<std::string_view> names;
  for (const NamedPart& p : kParts) names.push_back(p.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

absl::StatusOr<SearchParts> PartsWithout(std::string_view names) {
  SearchParts parts;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(std::string(names), ','))) {
    const auto named =
        std::find_if(std::begin(kParts), std::end(kParts), [&](const NamedPart& p) { return p.name == name; });
    if (name == "all") {
      for (const NamedPart& p : kParts) parts.*p.part = false;
    } else if (named != std::end(kParts)) {
      parts.*named->part = false;
    } else {
      return absl::InvalidArgumentError(
          fmt::format("'{}' is not a part of the search; give {}, or all for all of them", name, PartNames()));
    }
  }
  return parts;
}

}  // namespace hone::tuner
