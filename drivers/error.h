// SPDX-License-Identifier: Apache-2.0
// The result of a driver's functions: ok, or a kind of failure and a text for users. A plain value instead of
// absl::Status, because the drivers are part of the runtime, which uses only the C++ library.
#ifndef HONE_DRIVERS_ERROR_H_
#define HONE_DRIVERS_ERROR_H_

#include <cstdint>
#include <string>

namespace hone::drivers {

// The kind of failure, by its cause, so that a caller can tell a bad candidate from a bad device.
enum class ErrorKind : uint8_t {
  kNone,
  kAbsent,   // there is no driver library or no such device
  kProgram,  // the code does not compile, or the device rejects the kernel, its arguments or its launch
  kFault,    // a kernel failed while it ran, as by an illegal address; this process cannot use the device any more
  kTimeout,  // the deadline passed; the launches may still be running
  kBusy,     // another process has the device exclusively
  kMemory,   // not enough memory on the device, or not enough memory of this machine that the device can reach
  kDevice,   // everything else: a device that was lost, a driver that does not start
};

struct [[nodiscard]] Error {
  ErrorKind kind = ErrorKind::kNone;
  std::string text;  // empty if ok
  bool ok() const { return kind == ErrorKind::kNone; }
};

}  // namespace hone::drivers

#endif  // HONE_DRIVERS_ERROR_H_
