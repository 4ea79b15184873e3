// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/opencl/opencl_device.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/code_kind.h"
#include "base/digest.h"
#include "base/status.h"
#include "device_agent/devices/lanes/driver_device_nodes.h"
#include "device_agent/devices/lanes/driver_system_calls.h"
#include "device_agent/devices/lanes/lane_session.h"
#include "device_agent/devices/lanes/reference_kernel.h"
#include "device_agent/devices/lanes/self_test.h"

namespace hone::agent {
namespace {

// PoCL reads its settings when it is loaded. It keeps values that live across a barrier on the stack, which groups of
// its default maximum size overflow.
void SetPoclEnvironment(const std::string& folder, int threads) {
  setenv("POCL_CACHE_DIR", folder.c_str(), 1);
  setenv("POCL_MAX_WORK_GROUP_SIZE", "256", 0);
  if (threads > 0) setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(threads).c_str(), 1);
}

// threads: of a device that runs on the host's CPUs; 0 for all. The first call of a process counts.
absl::StatusOr<drivers::opencl::Library> LoadOpenClDriver(const std::string& folder, int threads) {
  SetPoclEnvironment(folder, threads);
  drivers::opencl::Library library;
  HONE_RETURN_IF_ERROR(ToStatus(drivers::opencl::Library::Load(&library)));
  return library;
}

absl::StatusOr<drivers::opencl::Device> OpenOpenClDriver(const std::string& selector, const std::string& folder,
                                                         int threads) {
  HONE_ASSIGN_OR_RETURN(const drivers::opencl::Library library, LoadOpenClDriver(folder, threads));
  drivers::opencl::Device device;
  HONE_RETURN_IF_ERROR(ToStatus(library.Open(selector, &device)));
  return device;
}

}  // namespace

// Does not open the device, so it works on a full device.
absl::StatusOr<DeviceFingerprint> OpenClDevice::Fingerprint() {
  HONE_ASSIGN_OR_RETURN(const drivers::opencl::Library library, LoadOpenClDriver(folder_, 0));
  drivers::opencl::DeviceInfo info;
  HONE_RETURN_IF_ERROR(ToStatus(library.Find(selector_, &info)));
  DeviceFingerprint fingerprint;
  fingerprint.architecture = std::string(FindCodeKind(CodeKind::kOpenCl)->architecture);
  fingerprint.cpu_model = info.name;
  fingerprint.memory_bytes = info.global_bytes;
  fingerprint.driver = info.driver_version;
  fingerprint.text =
      fmt::format("opencl {} {} {} units={} lanes={} local={}", Word(info.name), Word(info.platform_version),
                  Word(info.driver_version), info.compute_units, info.group_lanes_max, info.local_bytes);
  fingerprint.digest = Sha256Hex(fingerprint.text);
  fingerprint.place = fmt::format("opencl {}", info.number);
  return fingerprint;
}

SelfTestResult OpenClDevice::SelfTest(int) {
  return SelfTestOf<drivers::OpenClDriver>(OpenOpenClDriver(selector_, folder_, 0), folder_);
}

// Drivers read which software, CPUs and cards exist. PoCL's compiler runs the linker.
SandboxPolicy OpenClDevice::sandbox() const {
  SandboxPolicy policy;
  policy.readable = {"/etc/OpenCL", "/usr/share/pocl", "/usr/share/locale", "/usr/bin/ld", "/sys/devices",
                     "/sys/bus/pci", "/proc/cpuinfo", "/proc/self",
                     // Drivers of vendors, and those of NixOS with their dependencies.
                     "/opt/rocm", "/opt/amdgpu", "/opt/intel", "/run/opengl-driver", "/nix/store"};
  policy.writable = {folder_};
  policy.nodes = OpenClDeviceNodes();
  policy.calls = kDriverSystemCalls;
  policy.unlimited_address_space = true;
  policy.writes_thread_names = true;  // NVIDIA's, from version 570 on
  policy.open_files = 256;
  return policy;
}

void OpenClDevice::SetDriverEnvironment(int threads) const {
  SetPoclEnvironment(folder_, threads);
  setenv("XDG_CACHE_HOME", folder_.c_str(), 1);  // where the runtime keeps compiled code
}

absl::StatusOr<std::unique_ptr<StartedDevice>> OpenClDevice::Start(int threads) const {
  HONE_ASSIGN_OR_RETURN(drivers::opencl::Device device, OpenOpenClDriver(selector_, folder_, threads));
  return StartedLaneDevice<drivers::OpenClDriver>::Start(std::move(device), folder_);
}

}  // namespace hone::agent
