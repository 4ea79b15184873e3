// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cuda/cuda_device.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>

#include "base/code_kind.h"
#include "base/digest.h"
#include "base/status.h"
#include "device_agent/devices/lanes/driver_device_nodes.h"
#include "device_agent/devices/lanes/driver_system_calls.h"
#include "device_agent/devices/lanes/lane_session.h"
#include "device_agent/devices/lanes/reference_kernel.h"
#include "device_agent/devices/lanes/self_test.h"
#include "drivers/cuda.h"

namespace hone::agent {
namespace {

constexpr const char* kOtherFolder = "/usr/local/nvidia";  // where some systems have the driver's libraries

absl::StatusOr<drivers::cuda::Library> LoadCudaDriver() {
  drivers::cuda::Library library;
  HONE_RETURN_IF_ERROR(ToStatus(drivers::cuda::Library::Load(&library)));
  return library;
}

absl::StatusOr<drivers::cuda::Device> OpenCudaDriver(const std::string& selector) {
  HONE_ASSIGN_OR_RETURN(const drivers::cuda::Library library, LoadCudaDriver());
  drivers::cuda::Device device;
  HONE_RETURN_IF_ERROR(ToStatus(library.Open(selector, &device)));
  return device;
}

}  // namespace

// Does not open the device, so it works on a full device and on one that another process uses exclusively.
absl::StatusOr<DeviceFingerprint> CudaDevice::Fingerprint() {
  HONE_ASSIGN_OR_RETURN(const drivers::cuda::Library library, LoadCudaDriver());
  drivers::cuda::DeviceInfo info;
  HONE_RETURN_IF_ERROR(ToStatus(library.Find(selector_, &info)));
  pci_address_ = info.pci_address;
  static_cast<void>(drivers::cuda::NvmlLibrary::Load(&nvml_));  // not all have it
  DeviceFingerprint fingerprint;
  fingerprint.architecture = std::string(FindCodeKind(CodeKind::kPtx)->architecture);
  fingerprint.cpu_model = info.name;
  fingerprint.memory_bytes = info.global_bytes;
  fingerprint.driver = info.driver_version;
  fingerprint.text =
      fmt::format("cuda {} {} driver={} units={} lanes={} shared={} l2={}", Word(info.name), info.architecture,
                  info.driver_version, info.compute_units, info.group_lanes_max, info.local_bytes, info.cache_bytes);
  fingerprint.digest = Sha256Hex(fingerprint.text);
  if (!info.pci_address.empty()) fingerprint.place = fmt::format("cuda {}", info.pci_address);
  return fingerprint;
}

SelfTestResult CudaDevice::SelfTest(int) {
  SelfTestResult test = SelfTestOf<drivers::CudaDriver>(OpenCudaDriver(selector_), folder_);
  test.temperature_c = ReadSensors().temperature_c;
  return test;
}

Sensors CudaDevice::ReadSensors() const {
  const drivers::cuda::Condition condition = nvml_.Read(pci_address_);
  return {.temperature_c = condition.temperature_c,
          .clock_mhz = condition.clock_mhz,
          .watts = condition.watts,
          .slowed_down = condition.slowed_down,
          .seems_slowed_down = condition.seems_slowed_down};
}

// The driver reads which cards and CPUs exist, and uses its own nodes.
SandboxPolicy CudaDevice::sandbox() const {
  SandboxPolicy policy;
  policy.readable = {"/sys/devices", "/sys/bus/pci", "/proc/cpuinfo", "/proc/meminfo", "/proc/devices", "/proc/modules",
                     "/proc/driver/nvidia", "/proc/driver/nvidia-uvm", "/proc/sys/vm", kOtherFolder,
                     // Drivers of NixOS and their dependencies.
                     "/run/opengl-driver", "/nix/store",
                     // The model of a Jetson board.
                     "/sys/firmware/devicetree", "/sys/module/tegra_fuse"};
  policy.writable = {folder_};
  policy.nodes = CudaDeviceNodes();
  policy.calls = kDriverSystemCalls;
  policy.unlimited_address_space = true;
  policy.writes_thread_names = true;  // from version 570 on
  policy.open_files = 256;
  return policy;
}

bool CudaDevice::IsBuilt(const VisitBatch& batch) const {
  return std::ranges::all_of(batch.candidates, [&](const VisitCandidate& candidate) {
    const VisitKernel& kernel = candidate.kernel;
    const auto offset = static_cast<size_t>(kernel.code_offset), bytes = static_cast<size_t>(kernel.code_bytes);
    return batch.artifact.substr(offset, bytes > 0 ? bytes : batch.artifact.size()).find('\0') !=
           std::string_view::npos;
  });
}

void CudaDevice::SetDriverEnvironment(int) const {
  setenv("XDG_CACHE_HOME", folder_.c_str(), 1);  // where the runtime keeps compiled code
}

absl::StatusOr<std::unique_ptr<StartedDevice>> CudaDevice::Start(int) const {
  HONE_ASSIGN_OR_RETURN(drivers::cuda::Device device, OpenCudaDriver(selector_));
  return StartedLaneDevice<drivers::CudaDriver>::Start(std::move(device), folder_);
}

}  // namespace hone::agent
