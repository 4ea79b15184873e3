// SPDX-License-Identifier: Apache-2.0
// What drivers of devices say, in words of the runtime.
#ifndef HONE_DEPLOY_RUNTIME_DRIVER_FAULT_H_
#define HONE_DEPLOY_RUNTIME_DRIVER_FAULT_H_

#include <cstdint>
#include <string>

#include "deploy/runtime/fault.h"
#include "drivers/error.h"

namespace hone::runtime {

inline Fault ToFault(const drivers::Error& error) {
  switch (error.trouble) {
    case drivers::Trouble::kNone:
      return {};
    case drivers::Trouble::kAbsent:
    case drivers::Trouble::kProgram:
      return Incompatible(error.text);
    case drivers::Trouble::kMemory:
      return OutOfMemory(error.text + "; free memory of the device: end other programs, or free other models");
    case drivers::Trouble::kFault:
    case drivers::Trouble::kTimeout:
    case drivers::Trouble::kBusy:
    case drivers::Trouble::kDevice:
      break;
  }
  return IoError(error.text);
}

// Of a run. The device took the program when it was loaded: it is not Incompatible, whatever fails.
inline Fault ToRunFault(const drivers::Error& error) {
  Fault fault = ToFault(error);
  if (fault.code == HONE_INCOMPATIBLE) fault.code = HONE_IO_ERROR;
  return fault;
}

// Incompatible if a device of that kind has less than the code needs. target: as `hone compile --target` takes it.
inline Fault CheckNeed(int64_t needed, int64_t has, const std::string& what, const std::string& kind,
                       const std::string& device, const std::string& target) {
  if (needed <= has) return {};
  return Incompatible("the code needs " + std::to_string(needed) + " " + what + ", the " + kind + " device '" + device +
                      "' has " + std::to_string(has) + "; compile the model for this device (hone compile --target " +
                      target + ")");
}

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_DRIVER_FAULT_H_
