// SPDX-License-Identifier: Apache-2.0
// An OpenCL device, whose driver library is loaded at run time. Loading it sets PoCL's variables in the environment of
// this process.
#ifndef HONE_DEVICE_AGENT_DEVICES_OPENCL_OPENCL_DEVICE_H_
#define HONE_DEVICE_AGENT_DEVICES_OPENCL_OPENCL_DEVICE_H_

#include <memory>
#include <string>
#include <utility>

#include "device_agent/devices/device.h"
#include "device_agent/devices/lanes/self_test.h"

namespace hone::agent {

class OpenClDevice : public Device {
 public:
  // selector: as drivers::opencl::Library::Open takes it, empty for the first device. folder: where compiled code is
  // kept; used by this agent alone.
  OpenClDevice(std::string selector, std::string folder) : selector_(std::move(selector)), folder_(std::move(folder)) {}

  std::string id() const override { return selector_.empty() ? "opencl" : "opencl:" + selector_; }
  absl::StatusOr<DeviceFingerprint> Fingerprint() override;
  SelfTestResult SelfTest(int threads) override;
  Sensors ReadSensors() const override { return {}; }  // OpenCL has no sensors
  SandboxPolicy sandbox() const override;
  double load_seconds() const override { return 60; }  // a driver's compiler is slow
  int BuilderProcessesMax() const override { return HostBuilderProcessesMax(); }
  bool IsBuilt(const VisitBatch&) const override { return false; }
  void SetDriverEnvironment(int threads) const override;
  absl::StatusOr<std::unique_ptr<StartedDevice>> Start(int threads) const override;

 private:
  const std::string selector_, folder_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_OPENCL_OPENCL_DEVICE_H_
