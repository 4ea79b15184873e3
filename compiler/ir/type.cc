// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/type.h"

#include <charconv>

namespace hone::ir {
std::string ToString(Type type) {
  std::string text(Name(type.dtype));
  if (type.width != 1) text += "x" + std::to_string(type.width);
  return text;
}

std::optional<Type> ParseType(std::string_view text) {
  const size_t x = text.find('x');
  const auto dtype = ParseDType(text.substr(0, x));
  if (!dtype) return std::nullopt;
  if (x == std::string_view::npos) return Type{*dtype, 1};
  const std::string_view digits = text.substr(x + 1);
  int width = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), width);
  if (error != std::errc() || end != digits.data() + digits.size() || width < 2) return std::nullopt;
  return Type{*dtype, width};
}

}  // namespace hone::ir
