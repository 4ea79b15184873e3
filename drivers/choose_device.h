// SPDX-License-Identifier: Apache-2.0
// Which of several devices a person means.
#ifndef HONE_DRIVERS_CHOOSE_DEVICE_H_
#define HONE_DRIVERS_CHOOSE_DEVICE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "drivers/error.h"

namespace hone::drivers {

// selector: empty for the first one, a number for its place in the list, or a part of its name with '-' for spaces, in
// any case; the first that matches. kAbsent: none does; the text names those there are. kind: "OpenCL", for the text.
Error ChooseDevice(std::string_view kind, std::string_view selector, std::span<const std::string> names,
                   size_t* chosen);

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_CHOOSE_DEVICE_H_
