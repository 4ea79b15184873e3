// SPDX-License-Identifier: Apache-2.0
// A fake libnvidia-ml.so.1 for tests. It knows the device of fake_cuda.cc, which is warm. The environment variable
// HONE_FAKE_THROTTLE is the bit mask of reasons for a slow-down, as the real library reports it; unset: none.
#include <cstdlib>
#include <cstring>

namespace {
constexpr int kNotFound = 6;
char the_device;
}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  if (std::strcmp(address, "0000:65:00.0") != 0) return kNotFound;
  return *device = &the_device, 0;
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  return *celsius = 61, sensor == 0 ? 0 : kNotFound;
}
int nvmlDeviceGetClockInfo(void*, int clock, unsigned* mhz) { return *mhz = clock == 1 ? 1755 : 210, 0; }
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) { return *milliwatts = 287500, 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  const char* text = std::getenv("HONE_FAKE_THROTTLE");
  return *reasons = text == nullptr ? 0 : std::strtoull(text, nullptr, 0), 0;
}

}  // extern "C"
