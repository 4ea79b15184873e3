// SPDX-License-Identifier: Apache-2.0
// The CPUs of this machine as a device. If the machine has cores of several speeds, the device is one group of equal
// cores (base/cpu_cores.h), because a parallel loop over fast and slow cores takes as long as the slow ones need.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_CPU_DEVICE_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_CPU_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/devices/cpu/host.h"
#include "device_agent/devices/device.h"

namespace hone::agent {

class CpuDevice : public Device {
 public:
  // selector: as ChooseCores takes it.
  explicit CpuDevice(const std::string& selector = "") : selector_(selector), chosen_(ChooseCores(selector)) {}
  std::string id() const override { return selector_.empty() ? "cpu" : "cpu:" + selector_; }
  absl::StatusOr<DeviceFingerprint> Fingerprint() override;
  std::vector<int> cpus() const override;
  SelfTestResult SelfTest(int threads) override;
  Sensors ReadSensors() const override;
  SandboxPolicy sandbox() const override { return {}; }
  double load_seconds() const override { return 10; }  // nothing is compiled, but a board may allocate memory slowly
  int BuilderProcessesMax() const override { return 0; }
  bool IsBuilt(const VisitBatch&) const override { return true; }
  absl::StatusOr<std::unique_ptr<StartedDevice>> Start(int threads) const override;
  // kUnavailable: this thread cannot use all CPUs of the device any more, so its times would be those of another
  // device.
  absl::Status CheckCpusUsable() const;

 private:
  const std::string selector_;
  const absl::StatusOr<ChosenCores> chosen_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_CPU_DEVICE_H_
