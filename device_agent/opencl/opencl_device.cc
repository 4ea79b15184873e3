#include "device_agent/opencl/opencl_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/code_kind.h"
#include "base/digest.h"
#include "base/status.h"
#include "device_agent/opencl/calls_of_drivers.h"
#include "device_agent/opencl/driver.h"
#include "device_agent/opencl/opencl_session.h"
#include "drivers/opencl_roofline.h"

namespace hone::agent {
namespace {

constexpr int kSelfTestLoops = 15;
constexpr long kMostBuilders = 16;  // a few hundred megabytes each

std::string Word(std::string_view text) {
  std::string word(text.substr(0, text.find_last_not_of(' ') + 1));
  std::replace(word.begin(), word.end(), ' ', '-');
  return word.empty() ? "unknown" : word;
}

absl::Status Test(const drivers::opencl::Device& device, const std::string& folder, SelfTestResult& test) {
  HONE_ASSIGN_OR_RETURN(const ReferenceKernel reference, ReferenceKernel::Create(device, folder));
  std::vector<double> seconds;
  for (int i = 0; i < kSelfTestLoops; ++i) {
    HONE_ASSIGN_OR_RETURN(seconds.emplace_back(), reference.Time());
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[kSelfTestLoops / 2];
  test.reference_seconds = median;
  test.noise = (seconds[kSelfTestLoops * 3 / 4] - seconds[kSelfTestLoops / 4]) / median;
  drivers::opencl::MeasuredRoofline roofline;
  HONE_RETURN_IF_ERROR(ToStatus(drivers::opencl::MeasureRoofline(device, folder, &roofline)));
  test.peak_gflops = roofline.flops_per_second * 1e-9;
  test.bandwidth_gbps = roofline.memory_bytes_per_second * 1e-9;
  HONE_ASSIGN_OR_RETURN(const bool right, reference.IsRight());
  if (!right) return absl::InternalError("the reference kernel computes a wrong result: the device is broken");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DeviceFingerprint> OpenClDevice::Fingerprint() {
  HONE_ASSIGN_OR_RETURN(const drivers::opencl::Device device, OpenDriver(selector_, folder_, 0));
  const drivers::opencl::DeviceInfo& info = device.info();
  DeviceFingerprint fingerprint;
  fingerprint.architecture = std::string(FindCodeKind(CodeKind::kOpenCl)->architecture);
  fingerprint.cpu_model = info.name;
  fingerprint.memory_bytes = info.global_bytes;
  fingerprint.text =
      fmt::format("opencl {} {} {} units={} lanes={} local={}", Word(info.name), Word(info.platform_version),
                  Word(info.driver_version), info.compute_units, info.max_group_lanes, info.local_bytes);
  fingerprint.digest = Sha256Hex(fingerprint.text);
  return fingerprint;
}

SelfTestResult OpenClDevice::SelfTest(int) {
  SelfTestResult test;
  const absl::StatusOr<drivers::opencl::Device> device = OpenDriver(selector_, folder_, 0);
  const absl::Status status = device.ok() ? Test(*device, folder_, test) : device.status();
  test.passed = status.ok();
  test.reason = std::string(status.message());
  return test;
}

// Drivers look about them: what is installed, which CPUs and cards there are. PoCL's compiler runs the linker.
SandboxPolicy OpenClDevice::sandbox() const {
  SandboxPolicy policy;
  policy.readable = {"/etc/OpenCL",  "/usr/share/pocl", "/usr/share/locale", "/usr/bin/ld",
                     "/sys/devices", "/sys/bus/pci",    "/proc/cpuinfo",     "/proc/self"};
  policy.writable = {folder_};
  policy.nodes = {"/dev/dri", "/dev/kfd", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/null"};
  policy.calls = kCallsOfDrivers;
  policy.own_address_space = true;
  policy.open_files = 256;
  return policy;
}

// A driver's compiler has one lock for a whole process.
int OpenClDevice::builders() const {
  return static_cast<int>(std::clamp<long>(sysconf(_SC_NPROCESSORS_ONLN), 1, kMostBuilders));
}

absl::StatusOr<std::unique_ptr<Session>> OpenClDevice::Open(const SessionOptions& options) const {
  HONE_ASSIGN_OR_RETURN(drivers::opencl::Device device, OpenDriver(selector_, folder_, options.batch->threads));
  return OpenClSession::Open(std::move(device), folder_, options);
}

}  // namespace hone::agent
