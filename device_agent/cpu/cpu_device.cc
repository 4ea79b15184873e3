#include "device_agent/cpu/cpu_device.h"

#include "device_agent/cpu/cpu_session.h"
#include "device_agent/cpu/host.h"

namespace hone::agent {
namespace {

// Nothing of a CPU needs to be started.
class StartedCpu : public StartedDevice {
 public:
  absl::StatusOr<std::unique_ptr<Session>> Open(const SessionOptions& options) override {
    return CpuSession::Open(options);
  }
};

}  // namespace

absl::StatusOr<DeviceFingerprint> CpuDevice::Fingerprint() {
  if (!chosen_.ok()) return chosen_.status();
  return DetectHost(*chosen_);
}

std::vector<int> CpuDevice::cpus() const {
  // Where all are alike, nothing is chosen, and whoever starts the agent says which CPUs it may use.
  return chosen_.ok() && !chosen_->name.empty() ? chosen_->cores.Cpus() : std::vector<int>();
}

SelfTestResult CpuDevice::SelfTest(int threads) {
  const OnCpus own(cpus());
  return TestHost(threads);
}

Sensors CpuDevice::ReadSensors() const { return ReadHostSensors(); }

absl::StatusOr<std::unique_ptr<StartedDevice>> CpuDevice::Start(int) const { return std::make_unique<StartedCpu>(); }

}  // namespace hone::agent
