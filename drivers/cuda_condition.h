// SPDX-License-Identifier: Apache-2.0
// Reads the condition of a CUDA device, its temperature and clock, from NVIDIA's management library (NVML).
//
// The library is looked up when the program runs. It opens no context on the device, so that reading does not disturb
// the device's work. Not the device's properties and not its work: those are in cuda.h. Boards with CPU and GPU in one
// chip (Jetson) do not have the library. Start with NvmlLibrary::Load.
#ifndef HONE_DRIVERS_CUDA_CONDITION_H_
#define HONE_DRIVERS_CUDA_CONDITION_H_

#include <memory>
#include <optional>
#include <string>

#include "drivers/error.h"

namespace hone::drivers::cuda {

// A value that the device does not report is empty, or false.
struct Condition {
  std::optional<double> temperature_c;  // of the chip, degrees Celsius
  std::optional<double> clock_mhz;      // current clock of the compute units
  std::optional<double> watts;          // of the whole card: at this moment, on newer devices the mean of one second
  // The device is slowed down because of heat, or by the hardware for lack of power. Not counted: the driver's power
  // limit, at which a busy device always is, and the lower clock of an idle device. clock_mhz shows both.
  bool slowed_down = false;
  // The hardware reports that it slows down and gives no reason. It also does so briefly while a clock changes.
  bool seems_slowed_down = false;
};

// The loaded library. Several threads may use it at a time. A default-constructed one reports nothing.
class NvmlLibrary {
 public:
  // file: the argument of dlopen. kAbsent: the library is missing or does not start. It stays loaded until the process
  // ends.
  static Error Load(NvmlLibrary* nvml, const char* file = "libnvidia-ml.so.1");

  // pci_address: DeviceInfo::pci_address. All values are empty for an unknown device.
  Condition Read(const std::string& pci_address) const;

 private:
  struct Api;
  std::shared_ptr<const Api> api_;
};

}  // namespace hone::drivers::cuda

#endif  // HONE_DRIVERS_CUDA_CONDITION_H_
