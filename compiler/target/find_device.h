// SPDX-License-Identifier: Apache-2.0
// Internal to compiler/target: finds the device of this machine that a target's text selects.
#ifndef HONE_COMPILER_TARGET_FIND_DEVICE_H_
#define HONE_COMPILER_TARGET_FIND_DEVICE_H_

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "drivers/error.h"

namespace hone::target {

// Returns nullopt if no device is named and this machine has no driver or no device, so that compiling does not require
// one. InvalidArgument if no device matches `selector` (drivers/choose_device.h), or if the driver fails: compiling for
// some other device would be wrong. Driver is a type of drivers/lane_drivers.h. `elsewhere` is the error text's advice
// on compiling for a device that is not in this machine.
template <typename Driver>
absl::StatusOr<std::optional<typename Driver::DeviceInfo>> FindDevice(const std::string& selector,
                                                                      std::string_view elsewhere) {
  typename Driver::Library library;
  typename Driver::DeviceInfo info;
  drivers::Error error = Driver::Library::Load(&library);
  if (error.ok()) error = library.Find(selector, &info);
  if (error.ok()) return info;
  if (error.kind == drivers::ErrorKind::kAbsent && selector.empty()) return std::nullopt;
  return absl::InvalidArgumentError(
      fmt::format("target: {}; to compile for a device of another machine, {}", error.text, elsewhere));
}

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_FIND_DEVICE_H_
