#include "device_agent/cpu/cpu_device.h"

#include "device_agent/cpu/cpu_session.h"
#include "device_agent/cpu/host.h"

namespace hone::agent {

absl::StatusOr<DeviceFingerprint> CpuDevice::Fingerprint() { return DetectHost(); }

SelfTestResult CpuDevice::SelfTest(int threads) { return TestHost(threads); }

Sensors CpuDevice::ReadSensors() const { return ReadHostSensors(); }

absl::StatusOr<std::unique_ptr<Session>> CpuDevice::Open(const SessionOptions& options) const {
  return CpuSession::Open(options);
}

}  // namespace hone::agent
