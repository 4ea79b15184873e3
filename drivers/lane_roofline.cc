// SPDX-License-Identifier: Apache-2.0
#include "drivers/lane_roofline.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace hone::drivers {
namespace {

constexpr int kRepeats = 5;                           // timed runs of a kernel; the fastest counts
constexpr double kComputeSteps = 4096, kChains = 8;   // of hone_compute: multiply-adds per chain, chains per lane
constexpr int64_t kGroupsPerUnit = 8;                 // groups per compute unit
constexpr int64_t kMemoryBytes = int64_t{128} << 20;  // read from memory: at least this much, or four times the cache
constexpr int64_t kWorkingSetBytesMax = int64_t{512} << 20;  // and at most this much
constexpr int64_t kCachePasses = 32;                         // how often the working set in the cache is read

// The source of the two kernels.
// hone_compute(out): chains of multiply-adds, whose values stay near 2, far from infinities and denormals.
// hone_read(in, out, {stretch, passes}): each group reads its own `stretch` vectors, and neighbouring lanes read
// neighbouring vectors.
// A compiler removes results that are not used and computes equal ones once. Therefore a store depends on all results
// (it happens only if a sum is negative, which it never is, but the compiler cannot know), and every number of a vector
// has another start value.
template <typename Driver>
constexpr const char* kSource = nullptr;
template <>
constexpr const char* kSource<OpenClDriver> = R"(
kernel void hone_compute(global float* out) {
  float16 x[8];
  const float16 number = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (int i = 0; i < 8; ++i) x[i] = 2.0f + 0.1f * i + 0.001f * get_local_id(0) + 0.0001f * number;
  for (int step = 0; step < 4096; ++step) {
    x[0] = mad(x[0], 0.5f, 1.0f); x[1] = mad(x[1], 0.5f, 1.0f);
    x[2] = mad(x[2], 0.5f, 1.0f); x[3] = mad(x[3], 0.5f, 1.0f);
    x[4] = mad(x[4], 0.5f, 1.0f); x[5] = mad(x[5], 0.5f, 1.0f);
    x[6] = mad(x[6], 0.5f, 1.0f); x[7] = mad(x[7], 0.5f, 1.0f);
  }
  const float16 sum = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
  if (any(sum < 0.0f)) out[0] = 1.0f;
}
kernel void hone_read(global const VECTOR* in, global float* out, global const int* sizes) {
  const int stretch = sizes[0], passes = sizes[1];
  in += get_group_id(0) * (long)stretch;
  VECTOR sum = (VECTOR)(0.0f);
  for (int pass = 0; pass < passes; ++pass) {
    for (int i = get_local_id(0); i < stretch; i += get_local_size(0)) sum = fmax(sum, in[i] + (float)pass);
  }
  if (any(sum < 0.0f)) out[0] = 1.0f;
}
)";
// The same kernels in PTX, as LLVM compiles them, with scalars in hone_compute and vectors of four in hone_read. Loads
// bypass the first-level cache (.cg), which belongs to one compute unit.
template <>
constexpr const char* kSource<CudaDriver> = R"(.version 4.2
.target sm_53
.address_size 64
.visible .entry hone_compute(
  .param .u64 hone_compute_param_0
)
{
  .reg .pred   %p<3>;
  .reg .b32   %r<7>;
  .reg .f32   %f<50>;
  .reg .b64   %rd<2>;
  ld.param.u64   %rd1, [hone_compute_param_0];
  mov.u32   %r4, %tid.x;
  cvt.rn.f32.s32   %f25, %r4;
  mul.rn.f32   %f26, %f25, 0f3A000000;
  add.rn.f32   %f42, %f26, 0f40000000;
  add.rn.f32   %f43, %f26, 0f40080000;
  add.rn.f32   %f44, %f26, 0f40100000;
  add.rn.f32   %f45, %f26, 0f40180000;
  add.rn.f32   %f46, %f26, 0f40200000;
  add.rn.f32   %f47, %f26, 0f40280000;
  add.rn.f32   %f48, %f26, 0f40300000;
  add.rn.f32   %f49, %f26, 0f40380000;
  mov.b32   %r6, 0;
$L__BB0_1:
  fma.rn.f32   %f27, %f42, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f28, %f43, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f29, %f44, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f30, %f45, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f31, %f46, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f32, %f47, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f33, %f48, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f34, %f49, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f42, %f27, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f43, %f28, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f44, %f29, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f45, %f30, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f46, %f31, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f47, %f32, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f48, %f33, 0f3F000000, 0f3F800000;
  fma.rn.f32   %f49, %f34, 0f3F000000, 0f3F800000;
  add.s32   %r6, %r6, 2;
  setp.lt.u32   %p1, %r6, 4096;
  @%p1 bra   $L__BB0_1;
  add.rn.f32   %f35, %f42, %f43;
  add.rn.f32   %f36, %f44, %f45;
  add.rn.f32   %f37, %f46, %f47;
  add.rn.f32   %f38, %f48, %f49;
  add.rn.f32   %f39, %f35, %f36;
  add.rn.f32   %f40, %f37, %f38;
  add.rn.f32   %f41, %f39, %f40;
  setp.geu.f32   %p2, %f41, 0f00000000;
  @%p2 bra   $L__BB0_4;
  mov.b32   %r5, 1065353216;
  st.global.u32   [%rd1], %r5;
$L__BB0_4:
  ret;
}
.visible .entry hone_read(
  .param .u64 hone_read_param_0,
  .param .u64 hone_read_param_1,
  .param .u64 hone_read_param_2
)
{
  .reg .pred   %p<4>;
  .reg .b32   %r<14>;
  .reg .f32   %f<16>;
  .reg .b64   %rd<9>;
  ld.param.u64   %rd2, [hone_read_param_1];
  ld.param.u64   %rd3, [hone_read_param_0];
  mov.u32   %r1, %tid.x;
  mov.u32   %r2, %ntid.x;
  ld.param.u64   %rd4, [hone_read_param_2];
  mov.u32   %r10, %ctaid.x;
  ld.global.u32   %r3, [%rd4];
  ld.global.u32   %r4, [%rd4+4];
  mul.wide.u32   %rd5, %r10, %r3;
  shl.b64   %rd6, %rd5, 4;
  add.s64   %rd1, %rd3, %rd6;
  mov.f32   %f15, 0f00000000;
  mov.b32   %r12, 0;
  bra.uni   $L__BB1_1;
$L__BB1_4:
  add.s32   %r12, %r12, 1;
  setp.lt.u32   %p2, %r12, %r4;
  @%p2 bra   $L__BB1_1;
  bra.uni   $L__BB1_5;
$L__BB1_1:
  cvt.rn.f32.u32   %f2, %r12;
  mov.u32   %r13, %r1;
$L__BB1_2:
  setp.ge.u32   %p1, %r13, %r3;
  @%p1 bra   $L__BB1_4;
  mul.wide.u32   %rd7, %r13, 16;
  add.s64   %rd8, %rd1, %rd7;
  ld.global.cg.v4.f32   {%f6, %f7, %f8, %f9}, [%rd8];
  add.rn.f32   %f10, %f6, %f2;
  max.f32   %f11, %f10, %f7;
  max.f32   %f12, %f8, %f9;
  max.f32   %f13, %f11, %f12;
  max.f32   %f15, %f15, %f13;
  add.s32   %r13, %r13, %r2;
  bra.uni   $L__BB1_2;
$L__BB1_5:
  setp.geu.f32   %p3, %f15, 0f00000000;
  @%p3 bra   $L__BB1_7;
  mov.b32   %r11, 1065353216;
  st.global.u32   [%rd2], %r11;
$L__BB1_7:
  ret;
}
)";

// chain: numbers in each step of a chain. read_width: numbers that a lane reads at once. compute_lanes, read_lanes:
// lanes of a group in each kernel.
struct Shape {
  int64_t chain, compute_lanes, read_width, read_lanes;
};
Shape ShapeOf(const opencl::DeviceInfo& info) {
  // On a CPU the lanes of a group run one after another in a loop, so a group that reads has one lane.
  return {16, 64, info.is_cpu ? 16 : 4, info.is_cpu ? 1 : 256};
}
Shape ShapeOf(const cuda::DeviceInfo&) { return {1, 256, 4, 256}; }

// The most bytes that the measurement may allocate.
int64_t MostBytes(const opencl::DeviceInfo& info) { return info.buffer_bytes_max; }
int64_t MostBytes(const cuda::DeviceInfo& info) { return info.global_bytes / 4; }

std::string OptionsFor(const opencl::DeviceInfo& info) {
  return "-DVECTOR=float" + std::to_string(ShapeOf(info).read_width);
}
std::string OptionsFor(const cuda::DeviceInfo&) { return {}; }

template <typename Driver>
class Yardstick {
 public:
  Yardstick(const typename Driver::Device& device, const std::filesystem::path& folder, Deadline deadline)
      : device_(device),
        folder_(folder),
        deadline_(deadline),
        groups_(std::max<int64_t>(1, device.info().compute_units) * kGroupsPerUnit),
        shape_(ShapeOf(device.info())) {}

  Error Measure(LaneRoofline* roofline) {
    if (Error e = Build(); !e.ok()) return e;
    if (Error e = Compute(&roofline->flops_per_second); !e.ok()) return e;
    const int64_t cache = device_.info().cache_bytes / 2;
    if (cache > 0) {
      roofline->cache_bytes = cache;
      if (Error e = Read(cache, kCachePasses, &roofline->cache_bytes_per_second); !e.ok()) return e;
    }
    const int64_t memory =
        std::min({std::max(kMemoryBytes, 8 * cache), kWorkingSetBytesMax, MostBytes(device_.info())});
    return Read(memory, 1, &roofline->memory_bytes_per_second);
  }

 private:
  Error Build() {
    if (Error e = device_.Allocate(sizeof(float), &out_); !e.ok()) return e;
    if (Error e = device_.Allocate(2 * sizeof(int32_t), &sizes_); !e.ok()) return e;
    return device_.Build(kSource<Driver>, {.extra_options = OptionsFor(device_.info()), .cache_folder = folder_},
                         &program_);
  }

  Error Compute(double* flops_per_second) {
    if (Error e = program_.Find("hone_compute", &kernel_); !e.ok()) return e;
    if (Error e = kernel_.SetArg(0, out_); !e.ok()) return e;
    const int64_t lanes = std::min(shape_.compute_lanes, kernel_.group_lanes_max());
    double seconds = 0;
    if (Error e = Fastest(lanes, &seconds); !e.ok()) return e;
    *flops_per_second = static_cast<double>(groups_ * lanes * shape_.chain) * kComputeSteps * kChains * 2 / seconds;
    return {};
  }

  // Measures reading about `bytes` bytes `passes` times.
  Error Read(int64_t bytes, int64_t passes, double* bytes_per_second) {
    const int64_t vector = shape_.read_width * static_cast<int64_t>(sizeof(float));
    const int64_t stretch = std::max<int64_t>(1, bytes / groups_ / vector);
    const auto all = static_cast<size_t>(stretch * groups_ * vector);
    const int32_t sizes[] = {static_cast<int32_t>(stretch), static_cast<int32_t>(passes)};
    if (Error e = program_.Find("hone_read", &kernel_); !e.ok()) return e;
    in_ = {};  // frees the old buffer before the new one is allocated
    if (Error e = device_.Allocate(all, &in_); !e.ok()) return e;
    if (Error e = device_.Fill(in_, 0, all, std::byte{0}); !e.ok()) return e;
    if (Error e = device_.Write(sizes_, 0, std::as_bytes(std::span(sizes))); !e.ok()) return e;
    if (Error e = kernel_.SetArg(0, in_); !e.ok()) return e;
    if (Error e = kernel_.SetArg(1, out_); !e.ok()) return e;
    if (Error e = kernel_.SetArg(2, sizes_); !e.ok()) return e;
    const int64_t lanes = std::min(shape_.read_lanes, kernel_.group_lanes_max());
    double seconds = 0;
    if (Error e = Fastest(lanes, &seconds); !e.ok()) return e;
    *bytes_per_second = static_cast<double>(all) * static_cast<double>(passes) / seconds;
    return {};
  }

  // Sets *seconds to the shortest run of kernel_ among kRepeats, after one run that is not timed.
  Error Fastest(int64_t lanes, double* seconds) const {
    const typename Driver::Launch launch{&kernel_, groups_, lanes};
    Timing timing;
    if (Error e = device_.Run({&launch, 1}, deadline_); !e.ok()) return e;  // compiles the kernel and warms up
    if (Error e = device_.Time({&launch, 1}, kRepeats, deadline_, &timing); !e.ok()) return e;
    *seconds = *std::min_element(timing.device_seconds.begin(), timing.device_seconds.end());
    if (!(*seconds > 0)) *seconds = timing.wall_seconds / kRepeats;
    return {};
  }

  const typename Driver::Device device_;
  const std::filesystem::path folder_;
  const Deadline deadline_;
  const int64_t groups_;
  const Shape shape_;
  typename Driver::Program program_;
  typename Driver::Kernel kernel_;            // the kernel that is measured
  typename Driver::Buffer in_, out_, sizes_;  // its arguments
};

}  // namespace

template <typename Driver>
Error MeasureRoofline(const typename Driver::Device& device, const std::filesystem::path& cache_folder,
                      LaneRoofline* roofline, Deadline deadline) {
  auto yardstick = std::make_unique<Yardstick<Driver>>(device, cache_folder, deadline);
  const Error measured = yardstick->Measure(roofline);
  // The kernel may run for ever, and the driver waits for it before it frees what it uses. So nothing is freed.
  if (measured.kind == ErrorKind::kTimeout) static_cast<void>(yardstick.release());
  return measured;
}

template Error MeasureRoofline<OpenClDriver>(const opencl::Device&, const std::filesystem::path&, LaneRoofline*,
                                             Deadline);
template Error MeasureRoofline<CudaDriver>(const cuda::Device&, const std::filesystem::path&, LaneRoofline*, Deadline);

}  // namespace hone::drivers
