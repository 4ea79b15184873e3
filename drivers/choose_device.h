// SPDX-License-Identifier: Apache-2.0
// Chooses the device that a user's selector names.
#ifndef HONE_DRIVERS_CHOOSE_DEVICE_H_
#define HONE_DRIVERS_CHOOSE_DEVICE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "drivers/error.h"

namespace hone::drivers {

// Sets *chosen to the index in `names` of the first device that matches. selector: empty matches every device; a number
// is an index; other text is a part of the name, with '-' for spaces and regardless of case. kAbsent: none matches; the
// text lists the devices. kind: "OpenCL", for the text.
Error ChooseDevice(std::string_view kind, std::string_view selector, std::span<const std::string> names,
                   size_t* chosen);

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_CHOOSE_DEVICE_H_
