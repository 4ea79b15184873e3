// SPDX-License-Identifier: Apache-2.0
// Conversion of the drivers' errors (drivers/error.h) to the runtime's faults. Private to the back ends of devices.
#ifndef HONE_DEPLOY_RUNTIME_DRIVER_FAULT_H_
#define HONE_DEPLOY_RUNTIME_DRIVER_FAULT_H_

#include <cstdint>
#include <string>

#include "deploy/runtime/fault.h"
#include "drivers/error.h"

namespace hone::runtime {

// The fault for an error while a program is loaded. kAbsent and kProgram are Incompatible: this machine cannot run the
// program, also when it is tried again.
inline Fault ToFault(const drivers::Error& error) {
  switch (error.kind) {
    case drivers::ErrorKind::kNone:
      return {};
    case drivers::ErrorKind::kAbsent:
    case drivers::ErrorKind::kProgram:
      return Incompatible(error.text);
    case drivers::ErrorKind::kMemory:
      return OutOfMemory(error.text + "; free memory of the device: end other programs, or free other models");
    case drivers::ErrorKind::kFault:
    case drivers::ErrorKind::kTimeout:
    case drivers::ErrorKind::kBusy:
    case drivers::ErrorKind::kDevice:
      break;
  }
  return IoError(error.text);
}

// The fault for an error during a run: IoError instead of Incompatible, because the device accepted the program when it
// was loaded.
inline Fault ToRunFault(const drivers::Error& error) {
  Fault fault = ToFault(error);
  if (fault.code == HONE_INCOMPATIBLE) fault.code = HONE_IO_ERROR;
  return fault;
}

// Incompatible if the device has less than the code needs. what: the unit, "lanes in a group"; kind: "CUDA"; device:
// its name; target: the argument of `hone compile --target` that fits the device. All four are for the text.
inline Fault CheckRequirement(int64_t needed, int64_t has, const std::string& what, const std::string& kind,
                              const std::string& device, const std::string& target) {
  if (needed <= has) return {};
  return Incompatible("the code needs " + std::to_string(needed) + " " + what + ", the " + kind + " device '" + device +
                      "' has " + std::to_string(has) + "; compile the model for this device (hone compile --target " +
                      target + ")");
}

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_DRIVER_FAULT_H_
