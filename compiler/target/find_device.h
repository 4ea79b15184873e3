// SPDX-License-Identifier: Apache-2.0
// Inside compiler/target: the device of this machine that the text of a target means.
#ifndef HONE_COMPILER_TARGET_FIND_DEVICE_H_
#define HONE_COMPILER_TARGET_FIND_DEVICE_H_

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "drivers/error.h"

namespace hone::target {

// Nothing where this machine has no driver or no device and none is named, so that compiling needs none.
// InvalidArgument for a name that no device has, and for a driver that fails: code for another device would be the
// wrong answer. Driver: of drivers/lane_drivers.h. elsewhere: what to write to compile for a device that is not here.
template <typename Driver>
absl::StatusOr<std::optional<typename Driver::DeviceInfo>> FindDevice(const std::string& selector,
                                                                      std::string_view elsewhere) {
  typename Driver::Library library;
  typename Driver::DeviceInfo info;
  drivers::Error error = Driver::Library::Load(&library);
  if (error.ok()) error = library.Find(selector, &info);
  if (error.ok()) return info;
  if (error.trouble == drivers::Trouble::kAbsent && selector.empty()) return std::nullopt;
  return absl::InvalidArgumentError(
      fmt::format("target: {}; to compile for a device that is not here, {}", error.text, elsewhere));
}

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_FIND_DEVICE_H_
