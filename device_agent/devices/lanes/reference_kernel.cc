// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/lanes/reference_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace hone::agent {
namespace {

constexpr int64_t kGroups = 4, kLanes = 64;
constexpr uint32_t kSteps = 20'000;

template <typename Driver>
constexpr const char* kSource = nullptr;
template <>
constexpr const char* kSource<drivers::OpenClDriver> = R"(
kernel void hone_reference(global uint* y) {
  uint value = get_global_id(0);
  for (uint i = 0; i < 20000; ++i) value = value * 1664525u + (value >> 7) + i;
  y[get_global_id(0)] = value;
})";
// The same, as clang compiles it.
template <>
constexpr const char* kSource<drivers::CudaDriver> = R"(.version 4.2
.target sm_53
.address_size 64
.visible .entry hone_reference(
  .param .u64 hone_reference_param_0
)
{
  .reg .pred   %p<2>;
  .reg .b32   %r<16>;
  .reg .b64   %rd<4>;
  ld.param.u64   %rd1, [hone_reference_param_0];
  mov.u32   %r8, %ctaid.x;
  mov.u32   %r9, %ntid.x;
  mov.u32   %r10, %tid.x;
  mad.lo.s32   %r1, %r8, %r9, %r10;
  mov.b32   %r14, 0;
  mov.u32   %r15, %r1;
$L__BB0_1:
  .pragma "nounroll";
  shr.u32   %r11, %r15, 7;
  mad.lo.s32   %r4, %r15, 1664525, %r11;
  add.s32   %r15, %r14, %r4;
  add.s32   %r14, %r14, 1;
  setp.eq.s32   %p1, %r14, 20000;
  @%p1 bra   $L__BB0_2;
  bra.uni   $L__BB0_1;
$L__BB0_2:
  mul.wide.u32   %rd2, %r1, 4;
  add.s64   %rd3, %rd1, %rd2;
  add.s32   %r12, %r4, %r14;
  add.s32   %r13, %r12, -1;
  st.global.u32   [%rd3], %r13;
  ret;
}
)";

}  // namespace

absl::Status ToStatus(const drivers::Error& error) {
  switch (error.kind) {
    case drivers::ErrorKind::kNone:
      return absl::OkStatus();
    case drivers::ErrorKind::kAbsent:
      return absl::UnavailableError(error.text);
    case drivers::ErrorKind::kBusy:
      return absl::FailedPreconditionError(error.text);
    case drivers::ErrorKind::kProgram:
      return absl::InvalidArgumentError(error.text);
    case drivers::ErrorKind::kTimeout:
      return absl::DeadlineExceededError(error.text);
    case drivers::ErrorKind::kMemory:
      return absl::ResourceExhaustedError(error.text);
    case drivers::ErrorKind::kFault:
    case drivers::ErrorKind::kDevice:
      break;
  }
  return absl::InternalError(error.text);
}

template <typename Driver>
absl::StatusOr<ReferenceKernel<Driver>> ReferenceKernel<Driver>::Create(const typename Driver::Device& device,
                                                                        const std::string& folder,
                                                                        drivers::Deadline deadline) {
  ReferenceKernel reference;
  reference.deadline_ = deadline;
  reference.device_ = device;
  HONE_RETURN_IF_ERROR(
      ToStatus(device.Build(kSource<Driver>, {.extra_options = {}, .cache_folder = folder}, &reference.program_)));
  HONE_RETURN_IF_ERROR(ToStatus(reference.program_.Find("hone_reference", &reference.kernel_)));
  HONE_RETURN_IF_ERROR(ToStatus(device.Allocate(kGroups * kLanes * sizeof(uint32_t), &reference.output_)));
  HONE_RETURN_IF_ERROR(ToStatus(reference.kernel_.SetArg(0, reference.output_)));
  HONE_RETURN_IF_ERROR(reference.Run());  // builds what a driver builds at the first launch
  return reference;
}

template <typename Driver>
typename Driver::Launch ReferenceKernel<Driver>::ToLaunch() const {
  return {&kernel_, kGroups, kLanes};
}

// Freeing handles would wait for the running kernel, for ever if it hangs. So after a missed deadline a copy of all
// handles is kept until the process ends.
template <typename Driver>
absl::Status ReferenceKernel<Driver>::Ended(const drivers::Error& error) const {
  if (error.kind == drivers::ErrorKind::kTimeout) static_cast<void>(new ReferenceKernel(*this));
  return ToStatus(error);
}

template <typename Driver>
absl::Status ReferenceKernel<Driver>::Run() const {
  const typename Driver::Launch launch = ToLaunch();
  return Ended(device_.Run({&launch, 1}, deadline_));
}

template <typename Driver>
absl::StatusOr<double> ReferenceKernel<Driver>::Time() const {
  const typename Driver::Launch launch = ToLaunch();
  double best = 0;
  for (int i = 0; i < 3; ++i) {  // an interrupt is not taken for a slow clock
    drivers::Timing timing;
    HONE_RETURN_IF_ERROR(Ended(device_.Time({&launch, 1}, 1, deadline_, &timing)));
    const double seconds = SecondsOf(timing);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

template <typename Driver>
absl::StatusOr<bool> ReferenceKernel<Driver>::IsRight() const {
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

template class ReferenceKernel<drivers::OpenClDriver>;
template class ReferenceKernel<drivers::CudaDriver>;

}  // namespace hone::agent
