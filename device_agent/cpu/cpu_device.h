// The CPUs of this machine as a device.
#ifndef HONE_DEVICE_AGENT_CPU_CPU_DEVICE_H_
#define HONE_DEVICE_AGENT_CPU_CPU_DEVICE_H_

#include <memory>
#include <string>

#include "device_agent/device.h"

namespace hone::agent {

class CpuDevice : public Device {
 public:
  std::string id() const override { return "cpu"; }
  absl::StatusOr<DeviceFingerprint> Fingerprint() override;
  SelfTestResult SelfTest(int threads) override;
  Sensors ReadSensors() const override;
  SandboxPolicy sandbox() const override { return {}; }
  double load_seconds() const override { return 10; }  // nothing is built, but a board's memory may be slow to come by
  int builders() const override { return 0; }
  absl::StatusOr<std::unique_ptr<Session>> Open(const SessionOptions& options) const override;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CPU_CPU_DEVICE_H_
