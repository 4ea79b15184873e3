// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/convert_attribute.h"

#include <charconv>
#include <cmath>

namespace hone::graph {
namespace {

template <typename T>
std::optional<T> WholeNumberText(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && last == end ? std::optional<T>(value) : std::nullopt;
}

}  // namespace

std::optional<int64_t> ElementAsInt(int64_t value) { return value; }

std::optional<int64_t> ElementAsInt(double value) {
  constexpr double kBeyondInt64 = 0x1p63;
  const bool integral = value == std::trunc(value) && value >= -kBeyondInt64 && value < kBeyondInt64;
  return integral ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
}

std::optional<int64_t> ElementAsInt(const std::string& value) { return WholeNumberText<int64_t>(value); }
std::optional<double> ElementAsFloat(int64_t value) { return static_cast<double>(value); }
std::optional<double> ElementAsFloat(double value) { return value; }
std::optional<double> ElementAsFloat(const std::string& value) { return WholeNumberText<double>(value); }

}  // namespace hone::graph
