// SPDX-License-Identifier: Apache-2.0
#include "base/size_points.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace hone {
namespace {

// Takes the text up to the separator, which it drops, off the front of `rest`. `more`: whether there was a separator.
std::string_view TakeUntil(char separator, std::string_view& rest, bool& more) {
  const size_t end = rest.find(separator);
  const std::string_view taken = rest.substr(0, end);
  more = end != std::string_view::npos;
  rest.remove_prefix(more ? end + 1 : rest.size());
  return taken;
}

std::optional<SizePoint> ParsePoint(std::string_view text) {
  SizePoint point;
  for (bool more = true; more;) {
    std::string_view value = TakeUntil(',', text, more);
    bool has_value = false;
    const std::string_view name = TakeUntil('=', value, has_value);
    NamedSize size{std::string(name), 0};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size.value);
    const bool is_number = error == std::errc() && end == value.data() + value.size() && value.front() != '-';
    if (name.empty() || !has_value || !is_number) return std::nullopt;
    point.push_back(std::move(size));
  }
  return point;
}

}  // namespace

std::map<std::string, int64_t, std::less<>> ValuesOf(const SizePoint& point) {
  std::map<std::string, int64_t, std::less<>> values;
  for (const NamedSize& size : point) values[size.name] = size.value;
  return values;
}

int64_t GeometricMiddle(int64_t min, int64_t max) {
  const auto low = static_cast<double>(std::max<int64_t>(min, 1)), high = static_cast<double>(max);
  return std::clamp<int64_t>(std::llround(std::sqrt(low * high)), min, max);
}

std::string PrintSizePoints(std::span<const SizePoint> points) {
  std::string text;
  for (const SizePoint& point : points) {
    if (!text.empty()) text += ';';
    for (size_t i = 0; i < point.size(); ++i) {
      if (i > 0) text += ',';
      text += point[i].name + '=' + std::to_string(point[i].value);
    }
  }
  return text;
}

std::optional<std::vector<SizePoint>> ParseSizePoints(std::string_view text) {
  std::vector<SizePoint> points;
  for (bool more = !text.empty(); more;) {
    std::optional<SizePoint> point = ParsePoint(TakeUntil(';', text, more));
    if (!point.has_value() || points.size() == kSizePointsMax) return std::nullopt;
    if (!points.empty() && !std::ranges::equal(*point, points.front(), {}, &NamedSize::name, &NamedSize::name)) {
      return std::nullopt;
    }
    points.push_back(*std::move(point));
  }
  return points;
}

}  // namespace hone
