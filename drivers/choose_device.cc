// SPDX-License-Identifier: Apache-2.0
#include "drivers/choose_device.h"

#include <algorithm>
#include <cctype>

namespace hone::drivers {
namespace {

std::string Normalized(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() < 9 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

Error ChooseDevice(std::string_view kind, std::string_view selector, std::span<const std::string> names,
                   size_t* chosen) {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool matches = IsNumber(selector) ? std::stoul(std::string(selector)) == i
                                            : Normalized(names[i]).find(Normalized(selector)) != std::string::npos;
    if (matches) {
      *chosen = i;
      return {};
    }
    list += (list.empty() ? "" : ", ") + std::to_string(i) + " '" + names[i] + "'";
  }
  return {ErrorKind::kAbsent,
          "no " + std::string(kind) + " device '" + std::string(selector) + "'; the devices are: " + list};
}

}  // namespace hone::drivers
