// SPDX-License-Identifier: Apache-2.0
// A CUDA device, whose driver library is loaded at run time.
#ifndef HONE_DEVICE_AGENT_DEVICES_CUDA_CUDA_DEVICE_H_
#define HONE_DEVICE_AGENT_DEVICES_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <utility>

#include "device_agent/devices/device.h"
#include "device_agent/devices/lanes/self_test.h"
#include "drivers/cuda_condition.h"

namespace hone::agent {

class CudaDevice : public Device {
 public:
  // selector: as drivers::cuda::Library::Open takes it, empty for the first device. folder: where compiled code is
  // kept; used by this agent alone.
  CudaDevice(std::string selector, std::string folder) : selector_(std::move(selector)), folder_(std::move(folder)) {}

  std::string id() const override { return selector_.empty() ? "cuda" : "cuda:" + selector_; }
  absl::StatusOr<DeviceFingerprint> Fingerprint() override;
  SelfTestResult SelfTest(int threads) override;
  // Empty before Fingerprint, which looks up the PCI address.
  Sensors ReadSensors() const override;
  bool ReadsSensorsInVisits() const override { return true; }
  SandboxPolicy sandbox() const override;
  double load_seconds() const override { return 60; }  // the driver's compiler is slow on a board
  int BuilderProcessesMax() const override { return HostBuilderProcessesMax(); }
  bool IsBuilt(const VisitBatch& batch) const override;
  void SetDriverEnvironment(int) const override;
  absl::StatusOr<std::unique_ptr<StartedDevice>> Start(int threads) const override;

 private:
  const std::string selector_, folder_;
  drivers::cuda::NvmlLibrary nvml_;
  std::string pci_address_;  // identifies the device for nvml_
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CUDA_CUDA_DEVICE_H_
