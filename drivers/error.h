// SPDX-License-Identifier: Apache-2.0
// What can go wrong with a device: ok, or a kind of trouble and a text for people. A plain value, since the drivers are
// part of the runtime and use the C++ library alone.
#ifndef HONE_DRIVERS_ERROR_H_
#define HONE_DRIVERS_ERROR_H_

#include <cstdint>
#include <string>

namespace hone::drivers {

// Whose trouble it is, so that a caller can tell a bad candidate from a bad device.
enum class Trouble : uint8_t {
  kNone,
  kAbsent,   // no library, or no such device
  kProgram,  // the source does not build, or the device refuses the kernel, its arguments or its launch
  kFault,    // a kernel went where it must not; nothing more can be done with the device in this process
  kTimeout,  // the deadline passed; what was launched may still be running
  kBusy,     // another process has the device for itself
  kMemory,   // there is not as much, of the device's or of this machine's that the device reaches
  kDevice,   // everything else: a device that was lost, a driver that does not start
};

struct [[nodiscard]] Error {
  Trouble trouble = Trouble::kNone;
  std::string text;  // empty if ok
  bool ok() const { return trouble == Trouble::kNone; }
};

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_ERROR_H_
