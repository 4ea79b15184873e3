// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/target_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/split.h"
#include "base/status.h"

namespace hone::target {
namespace {

template <typename T>
absl::Status ParseNumber(const TargetText::Option& option, T* out) {
  const char* const end = option.value.data() + option.value.size();
  const auto [last, error] = std::from_chars(option.value.data(), end, *out);
  if (error != std::errc() || last != end || *out < 1) {
    return absl::InvalidArgumentError(
        fmt::format("target: {} must be a positive number, not '{}'", option.name, option.value));
  }
  return absl::OkStatus();
}

}  // namespace

const TargetText::Option* TargetText::Find(std::string_view name) const {
  const auto it = std::find_if(options.rbegin(), options.rend(), [&](const Option& o) { return o.name == name; });
  return it == options.rend() ? nullptr : &*it;
}

TargetText Split(std::string_view text) {
  TargetText result;
  bool first = true;
  for (const std::string_view word : SplitNonEmpty(text, ' ')) {
    const size_t equals = std::min(word.find('='), word.size());
    if (first) {
      result.word = word;
    } else {
      result.options.push_back({word.substr(0, equals), word.substr(std::min(equals + 1, word.size()))});
    }
    first = false;
  }
  return result;
}

absl::Status ParseNumbers(const TargetText& text, std::vector<std::string> words, Target& target) {
  const std::vector<Number> numbers = EntryOf(target.kind)->numbers(target);
  for (const TargetText::Option& option : text.options) {
    const auto is_meant = [&](std::string_view word) { return word.substr(0, word.find('=')) == option.name; };
    if (std::ranges::any_of(words, is_meant)) continue;
    const auto number =
        std::find_if(numbers.begin(), numbers.end(), [&](const Number& n) { return n.name == option.name; });
    if (number == numbers.end()) {
      for (const Number& n : numbers) words.push_back(std::string(n.name) + "=");
      return absl::InvalidArgumentError(
          fmt::format("target: no option '{}'; there are {}", option.name, fmt::join(words, " ")));
    }
    HONE_RETURN_IF_ERROR(number->small != nullptr ? ParseNumber(option, number->small)
                                                  : ParseNumber(option, number->large));
  }
  return absl::OkStatus();
}

}  // namespace hone::target
