// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/label.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace hone::agent {
namespace {

bool Holds(std::string_view text, std::string_view forbidden) {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || forbidden.find(c) != std::string_view::npos;
  });
}

}  // namespace

absl::StatusOr<Label> ParseLabel(const std::string& text) {
  const size_t equals = text.find('=');
  Label label{text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1)};
  const bool complete = !label.name.empty() && (equals == std::string::npos || !label.value.empty());
  if (complete && !Holds(label.name, ",/=") && !Holds(label.value, ",")) return label;
  return absl::InvalidArgumentError(
      fmt::format("--label '{}': write NAME or NAME=VALUE, without spaces and commas, and the name without '/'", text));
}

}  // namespace hone::agent
