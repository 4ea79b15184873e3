#include "device_agent/opencl/driver.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace hone::agent {
namespace {

namespace cl = drivers::opencl;

constexpr int64_t kGroups = 4, kLanes = 64;
constexpr uint32_t kSteps = 20'000;
constexpr char kSource[] = R"(
kernel void hone_reference(global uint* y) {
  uint value = get_global_id(0);
  for (uint i = 0; i < 20000; ++i) value = value * 1664525u + (value >> 7) + i;
  y[get_global_id(0)] = value;
})";

}  // namespace

absl::Status ToStatus(const drivers::Error& error) {
  switch (error.trouble) {
    case drivers::Trouble::kNone:
      return absl::OkStatus();
    case drivers::Trouble::kAbsent:
      return absl::UnavailableError(error.text);
    case drivers::Trouble::kProgram:
      return absl::InvalidArgumentError(error.text);
    case drivers::Trouble::kTimeout:
      return absl::DeadlineExceededError(error.text);
    case drivers::Trouble::kDevice:
      break;
  }
  return absl::InternalError(error.text);
}

absl::StatusOr<cl::Device> OpenDriver(const std::string& selector, const std::string& folder, int threads) {
  // PoCL reads its settings when it is loaded. It keeps what lives across a barrier on the stack, which groups as large
  // as it allows by itself overflow.
  setenv("POCL_CACHE_DIR", folder.c_str(), 1);
  setenv("POCL_MAX_WORK_GROUP_SIZE", "256", 0);
  if (threads > 0) setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(threads).c_str(), 1);
  cl::Library library;
  HONE_RETURN_IF_ERROR(ToStatus(cl::Library::Load(&library)));
  cl::Device device;
  HONE_RETURN_IF_ERROR(ToStatus(library.Open(selector, &device)));
  return device;
}

cl::Deadline NoDeadline() { return std::chrono::steady_clock::now() + std::chrono::hours(24); }

double SecondsOf(const cl::Timing& timing) {
  double seconds = 0;
  for (const double repeat : timing.device_seconds) {
    if (!(repeat > 0)) return timing.wall_seconds;
    seconds += repeat;
  }
  return seconds > 0 && seconds <= timing.wall_seconds ? seconds : timing.wall_seconds;
}

absl::StatusOr<ReferenceKernel> ReferenceKernel::Create(const cl::Device& device, const std::string& folder) {
  ReferenceKernel reference;
  reference.device_ = device;
  HONE_RETURN_IF_ERROR(ToStatus(device.Build(kSource, {.extra = {}, .cache_folder = folder}, &reference.program_)));
  HONE_RETURN_IF_ERROR(ToStatus(reference.program_.Find("hone_reference", &reference.kernel_)));
  HONE_RETURN_IF_ERROR(ToStatus(device.Allocate(kGroups * kLanes * sizeof(uint32_t), &reference.output_)));
  HONE_RETURN_IF_ERROR(ToStatus(reference.kernel_.SetArg(0, reference.output_)));
  HONE_RETURN_IF_ERROR(reference.Run());  // builds what a driver builds at the first launch
  return reference;
}

cl::Launch ReferenceKernel::Launch() const { return {&kernel_, kGroups, kLanes}; }

absl::Status ReferenceKernel::Run() const {
  const cl::Launch launch = Launch();
  return ToStatus(device_.Run({&launch, 1}, NoDeadline()));
}

absl::StatusOr<double> ReferenceKernel::Time() const {
  const cl::Launch launch = Launch();
  double best = 0;
  for (int i = 0; i < 3; ++i) {  // an interrupt is not taken for a slow clock
    cl::Timing timing;
    HONE_RETURN_IF_ERROR(ToStatus(device_.Time({&launch, 1}, 1, NoDeadline(), &timing)));
    const double seconds = SecondsOf(timing);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

absl::StatusOr<bool> ReferenceKernel::IsRight() const {
  HONE_RETURN_IF_ERROR(Run());
  std::vector<uint32_t> output(kGroups * kLanes);
  HONE_RETURN_IF_ERROR(ToStatus(device_.Read(output_, 0, std::as_writable_bytes(std::span(output)))));
  for (uint32_t lane = 0; lane < output.size(); ++lane) {
    uint32_t value = lane;
    for (uint32_t i = 0; i < kSteps; ++i) value = value * 1664525U + (value >> 7) + i;
    if (output[lane] != value) return false;
  }
  return true;
}

}  // namespace hone::agent
