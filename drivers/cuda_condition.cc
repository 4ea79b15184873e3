// SPDX-License-Identifier: Apache-2.0
#include "drivers/cuda_condition.h"

#include <dlfcn.h>

#include <utility>

namespace hone::drivers::cuda {

// The functions of the library under their names there, declared with our own types.
struct NvmlLibrary::Api {
  int (*nvmlInit_v2)() = nullptr;
  int (*nvmlDeviceGetHandleByPciBusId_v2)(const char*, void**) = nullptr;
  int (*nvmlDeviceGetTemperature)(void*, int, unsigned*) = nullptr;
  int (*nvmlDeviceGetClockInfo)(void*, int, unsigned*) = nullptr;
  int (*nvmlDeviceGetPowerUsage)(void*, unsigned*) = nullptr;  // milliwatts
  int (*nvmlDeviceGetCurrentClocksThrottleReasons)(void*, unsigned long long*) = nullptr;
};

namespace {

constexpr int kOfTheChip = 0;                       // NVML_TEMPERATURE_GPU: the sensor of the chip
constexpr int kOfTheUnits = 1;                      // NVML_CLOCK_SM: the clock of the compute units
constexpr unsigned long long kSlowedDown = 0x20     // reason: by the driver, because of heat
                                           | 0x40   // reason: by the hardware, because of heat
                                           | 0x80;  // reason: by the hardware, for lack of power
// Left out is 0x04, the driver's power limit: a large device is at that limit whenever it works.
constexpr unsigned long long kSeemsSlowedDown = 0x08;  // by the hardware, for any reason

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Error NvmlLibrary::Load(NvmlLibrary* nvml, const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {ErrorKind::kAbsent, std::string("there is no ") + file};
  auto api = std::make_shared<Api>();
  const bool found =
      Find(library, "nvmlInit_v2", api->nvmlInit_v2) &&
      Find(library, "nvmlDeviceGetHandleByPciBusId_v2", api->nvmlDeviceGetHandleByPciBusId_v2) &&
      Find(library, "nvmlDeviceGetTemperature", api->nvmlDeviceGetTemperature) &&
      Find(library, "nvmlDeviceGetClockInfo", api->nvmlDeviceGetClockInfo) &&
      Find(library, "nvmlDeviceGetPowerUsage", api->nvmlDeviceGetPowerUsage) &&
      Find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", api->nvmlDeviceGetCurrentClocksThrottleReasons);
  if (!found) return {ErrorKind::kAbsent, std::string(file) + " lacks functions that every driver has had since 2016"};
  if (const int code = api->nvmlInit_v2(); code != 0) {
    return {ErrorKind::kAbsent, std::string(file) + " does not start: NVML error " + std::to_string(code)};
  }
  nvml->api_ = std::move(api);
  return {};
}

Condition NvmlLibrary::Read(const std::string& pci_address) const {
  Condition condition;
  void* device = nullptr;
  if (api_ == nullptr || api_->nvmlDeviceGetHandleByPciBusId_v2(pci_address.c_str(), &device) != 0) return condition;
  unsigned value = 0;
  if (api_->nvmlDeviceGetTemperature(device, kOfTheChip, &value) == 0) condition.temperature_c = value;
  if (api_->nvmlDeviceGetClockInfo(device, kOfTheUnits, &value) == 0) condition.clock_mhz = value;
  if (api_->nvmlDeviceGetPowerUsage(device, &value) == 0) condition.watts = value * 1e-3;
  unsigned long long reasons = 0;
  if (api_->nvmlDeviceGetCurrentClocksThrottleReasons(device, &reasons) == 0) {
    condition.slowed_down = (reasons & kSlowedDown) != 0;
    condition.seems_slowed_down = (reasons & kSeemsSlowedDown) != 0;
  }
  return condition;
}

}  // namespace hone::drivers::cuda
