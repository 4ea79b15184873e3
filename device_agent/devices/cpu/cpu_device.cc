// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cpu/cpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/cpu_cores.h"
#include "base/status.h"
#include "device_agent/devices/cpu/cpu_session.h"
#include "device_agent/devices/cpu/host.h"

namespace hone::agent {
namespace {

// A CPU has no driver to start.
class StartedCpu : public StartedDevice {
 public:
  explicit StartedCpu(const CpuDevice& device) : device_(device) {}
  absl::StatusOr<std::unique_ptr<Session>> Open(const SessionOptions& options) override {
    HONE_RETURN_IF_ERROR(device_.CheckCpusUsable());
    return CpuSession::Open(options);
  }

 private:
  const CpuDevice& device_;
};

}  // namespace

absl::StatusOr<DeviceFingerprint> CpuDevice::Fingerprint() {
  if (!chosen_.ok()) return chosen_.status();
  return DetectHost(*chosen_);
}

std::vector<int> CpuDevice::cpus() const {
  // If all cores are alike, the device uses all CPUs that its process may use.
  return chosen_.ok() && !chosen_->name.empty() ? chosen_->cores.Cpus() : std::vector<int>();
}

absl::Status CpuDevice::CheckCpusUsable() const {
  if (!chosen_.ok()) return chosen_.status();
  const std::vector<int> usable = UsableCpus(), own = chosen_->cores.Cpus();
  const auto left = std::ranges::count_if(own, [&](int cpu) { return std::ranges::binary_search(usable, cpu); });
  if (usable.empty() || left == std::ssize(own)) return absl::OkStatus();  // empty: unknown
  return absl::UnavailableError(
      fmt::format("only {} of its {} CPUs can be used; check why the others are offline, or restart the agent to "
                  "measure on the remaining ones",
                  left, own.size()));
}

SelfTestResult CpuDevice::SelfTest(int threads) {
  const absl::Status complete = CheckCpusUsable();
  const ScopedCpuAffinity own(cpus());
  SelfTestResult test = TestHost(threads);
  if (test.passed && !complete.ok()) {
    test.passed = false;
    test.reason = std::string(complete.message());
  }
  return test;
}

Sensors CpuDevice::ReadSensors() const { return ReadHostSensors(); }

absl::StatusOr<std::unique_ptr<StartedDevice>> CpuDevice::Start(int) const {
  return std::make_unique<StartedCpu>(*this);
}

}  // namespace hone::agent
