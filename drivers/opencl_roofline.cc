#include "drivers/opencl_roofline.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

namespace hone::drivers::opencl {
namespace {

constexpr int kRepeats = 5;  // the fastest counts
constexpr double kComputeSteps = 4096, kChains = 8, kWidth = 16;
constexpr int64_t kGroupsPerUnit = 8, kComputeLanes = 64;
constexpr int64_t kMemoryBytes = int64_t{128} << 20;  // at least, and four times the cache
constexpr int64_t kMostMemoryBytes = int64_t{512} << 20;
constexpr int64_t kCachePasses = 32;

// x stays near 2, away from infinities and denormals. A group reads a stretch of its own, neighbouring lanes
// neighbouring vectors; the sum is never negative, which the compiler does not know.
constexpr char kSource[] = R"(
kernel void hone_compute(global float* out, float factor) {
  float16 x[8];
  for (int i = 0; i < 8; ++i) x[i] = (float16)(2.0f + 0.01f * i);
  for (int step = 0; step < 4096; ++step) {
    x[0] = mad(x[0], factor, 1.0f); x[1] = mad(x[1], factor, 1.0f);
    x[2] = mad(x[2], factor, 1.0f); x[3] = mad(x[3], factor, 1.0f);
    x[4] = mad(x[4], factor, 1.0f); x[5] = mad(x[5], factor, 1.0f);
    x[6] = mad(x[6], factor, 1.0f); x[7] = mad(x[7], factor, 1.0f);
  }
  const float16 sum = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7];
  if (sum.s0 + sum.s7 + sum.sf < 0.0f) out[0] = 1.0f;
}
kernel void hone_read(global const VECTOR* in, global float* out, int stretch, int passes) {
  in += get_group_id(0) * (long)stretch;
  VECTOR sum = (VECTOR)(0.0f);
  for (int pass = 0; pass < passes; ++pass) {
    for (int i = get_local_id(0); i < stretch; i += get_local_size(0)) sum = fmax(sum, in[i] + (float)pass);
  }
  if (sum.s0 + sum.s1 + sum.s2 + sum.s3 < 0.0f) out[0] = 1.0f;
}
)";

// Fewest seconds of the launch.
Error Fastest(const Device& device, const Launch& launch, double* seconds) {
  Timing timing;
  const Deadline never = std::chrono::steady_clock::now() + std::chrono::hours(1);
  if (Error e = device.Run({&launch, 1}, never); !e.ok()) return e;  // builds, warms up
  if (Error e = device.Time({&launch, 1}, kRepeats, never, &timing); !e.ok()) return e;
  *seconds = *std::min_element(timing.device_seconds.begin(), timing.device_seconds.end());
  if (!(*seconds > 0)) *seconds = timing.wall_seconds / kRepeats;
  return {};
}

class Yardstick {
 public:
  Yardstick(const Device& device, const std::filesystem::path& folder)
      : device_(device), folder_(folder), groups_(std::max<int64_t>(1, device.info().compute_units) * kGroupsPerUnit) {}

  Error Build() {
    const std::string vector = "-DVECTOR=float" + std::to_string(Width());
    if (Error e = device_.Allocate(sizeof(float), &out_); !e.ok()) return e;
    return device_.Build(kSource, {.extra = vector, .cache_folder = folder_}, &program_);
  }

  Error Compute(double* flops_per_second) {
    Kernel kernel;
    if (Error e = program_.Find("hone_compute", &kernel); !e.ok()) return e;
    if (Error e = kernel.SetArg(0, out_); !e.ok()) return e;
    if (Error e = kernel.SetArg(1, 0.5F); !e.ok()) return e;
    const int64_t lanes = std::min(kComputeLanes, kernel.facts().max_group_lanes);
    double seconds = 0;
    if (Error e = Fastest(device_, {&kernel, groups_, lanes}, &seconds); !e.ok()) return e;
    *flops_per_second = static_cast<double>(groups_ * lanes) * kComputeSteps * kChains * kWidth * 2 / seconds;
    return {};
  }

  // Reads about so many bytes, `passes` times.
  Error Read(int64_t bytes, int64_t passes, double* bytes_per_second) {
    const int64_t vector = Width() * static_cast<int64_t>(sizeof(float));
    const int64_t stretch = std::max<int64_t>(1, bytes / groups_ / vector);
    const auto all = static_cast<size_t>(stretch * groups_ * vector);
    Kernel kernel;
    Buffer in;
    if (Error e = program_.Find("hone_read", &kernel); !e.ok()) return e;
    if (Error e = device_.Allocate(all, &in); !e.ok()) return e;
    if (Error e = device_.Fill(in, 0, all, std::byte{0}); !e.ok()) return e;
    if (Error e = kernel.SetArg(0, in); !e.ok()) return e;
    if (Error e = kernel.SetArg(1, out_); !e.ok()) return e;
    if (Error e = kernel.SetArg(2, static_cast<int32_t>(stretch)); !e.ok()) return e;
    if (Error e = kernel.SetArg(3, static_cast<int32_t>(passes)); !e.ok()) return e;
    // The lanes of a CPU are one loop after another: there a group is one lane.
    const int64_t lanes = device_.info().is_cpu ? 1 : std::min<int64_t>(256, kernel.facts().max_group_lanes);
    double seconds = 0;
    if (Error e = Fastest(device_, {&kernel, groups_, lanes}, &seconds); !e.ok()) return e;
    *bytes_per_second = static_cast<double>(all) * static_cast<double>(passes) / seconds;
    return {};
  }

 private:
  int64_t Width() const { return device_.info().is_cpu ? 16 : 4; }

  const Device& device_;
  const std::filesystem::path folder_;
  const int64_t groups_;
  Program program_;
  Buffer out_;
};

}  // namespace

Error MeasureRoofline(const Device& device, const std::filesystem::path& cache_folder, MeasuredRoofline* roofline) {
  Yardstick yardstick(device, cache_folder);
  if (Error e = yardstick.Build(); !e.ok()) return e;
  if (Error e = yardstick.Compute(&roofline->flops_per_second); !e.ok()) return e;
  const int64_t cache = device.info().cache_bytes / 2;
  if (cache > 0) {
    roofline->cache_bytes = cache;
    if (Error e = yardstick.Read(cache, kCachePasses, &roofline->cache_bytes_per_second); !e.ok()) return e;
  }
  const int64_t memory =
      std::min({std::max(kMemoryBytes, 8 * cache), kMostMemoryBytes, device.info().max_buffer_bytes});
  return yardstick.Read(memory, 1, &roofline->memory_bytes_per_second);
}

}  // namespace hone::drivers::opencl
