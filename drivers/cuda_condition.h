// SPDX-License-Identifier: Apache-2.0
// How a CUDA device fares: its temperature and its clock, from the library with which NVIDIA's driver is managed.
//
// Found when the program runs, as the driver is; opens no context, so that whoever asks disturbs nobody. Not what the
// device is and not work for it: cuda.h. Boards with a CPU and a GPU in one chip (Jetson) have no such library.
#ifndef HONE_DRIVERS_CUDA_CONDITION_H_
#define HONE_DRIVERS_CUDA_CONDITION_H_

#include <memory>
#include <optional>
#include <string>

#include "drivers/error.h"

namespace hone::drivers::cuda {

// What the device does not tell is empty.
struct Condition {
  std::optional<double> temperature_c;
  std::optional<double> clock_mhz;  // of its compute units, now
  // By heat, or by the hardware for lack of power. Not by the driver at the limit of its power, where a busy device
  // always is, nor because it has nothing to do: clock_mhz shows both.
  bool slowed_down = false;
  // The hardware says that it slows down and not why; it also says so for a moment while a clock changes.
  bool seems_slowed_down = false;
};

// May be used by several threads at a time.
class Management {
 public:
  // file: as dlopen takes it. kAbsent: it is not on this machine, or it does not start. Stays loaded until the process
  // ends.
  static Error Load(Management* management, const char* file = "libnvidia-ml.so.1");

  // pci_address: as DeviceInfo has it. Empty for a device that is not known.
  Condition Read(const std::string& pci_address) const;

 private:
  struct Api;
  std::shared_ptr<const Api> api_;
};

}  // namespace hone::drivers::cuda

#endif  // HONE_DRIVERS_CUDA_CONDITION_H_
