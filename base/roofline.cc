// SPDX-License-Identifier: Apache-2.0
#include "base/roofline.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <istream>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "base/seconds_since.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__arm__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#pragma GCC push_options
#pragma GCC target("fpu=neon-vfpv4")
#include <arm_neon.h>
#pragma GCC pop_options
#endif

namespace hone {
namespace {

// This file is built with -O3 in every build type (base/CMakeLists.txt), because the accumulators of these benchmark
// loops must stay in registers. Each loop has enough independent chains to hide the latency of the units, and few
// enough for the registers.

// The benchmark loops for one instruction set. `compute` does `rounds` rounds of independent multiply-adds; its values
// stay near 1, away from infinities and denormals. `read` reads every byte of the data. The results only keep the
// compiler from removing the work.
struct Yardstick {
  double flops_per_round;
  float (*compute)(int64_t rounds);
  uint64_t (*read)(const uint64_t* data, int64_t words);  // words: a multiple of kReadWords
};
constexpr int64_t kReadWords = 64;  // 8-byte words that one step of the widest read loop takes

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float ComputeAvx512(int64_t rounds) {
  __m512 x[16];
  for (int i = 0; i < 16; ++i) x[i] = _mm512_set1_ps(1.0f + 0.01f * static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) x[i] = _mm512_fmadd_ps(x[i], a, b);
  }
  for (int i = 1; i < 16; ++i) x[0] = _mm512_add_ps(x[0], x[i]);
  return _mm512_cvtss_f32(x[0]);
}

__attribute__((target("avx512f"))) uint64_t ReadAvx512(const uint64_t* data, int64_t words) {
  __m512i any[8] = {};
  for (int64_t w = 0; w < words; w += 64) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) any[i] = _mm512_or_si512(any[i], _mm512_loadu_si512(data + w + 8 * i));
  }
  for (int i = 1; i < 8; ++i) any[0] = _mm512_or_si512(any[0], any[i]);
  uint64_t words_read[8];
  _mm512_storeu_si512(words_read, any[0]);
  return words_read[0];
}

__attribute__((target("avx2,fma"))) float ComputeAvx2(int64_t rounds) {
  __m256 x[12];
  for (int i = 0; i < 12; ++i) x[i] = _mm256_set1_ps(1.0f + 0.01f * static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) x[i] = _mm256_fmadd_ps(x[i], a, b);
  }
  for (int i = 1; i < 12; ++i) x[0] = _mm256_add_ps(x[0], x[i]);
  return _mm256_cvtss_f32(x[0]);
}

__attribute__((target("avx2"))) uint64_t ReadAvx2(const uint64_t* data, int64_t words) {
  __m256i any[8] = {};
  for (int64_t w = 0; w < words; w += 32) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      any[i] = _mm256_or_si256(any[i], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + w + 4 * i)));
    }
  }
  for (int i = 1; i < 8; ++i) any[0] = _mm256_or_si256(any[0], any[i]);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm256_castsi256_si128(any[0])));
}
#endif

#if defined(__aarch64__)
float ComputeNeon(int64_t rounds) {
  float32x4_t x[24];
  for (int i = 0; i < 24; ++i) x[i] = vdupq_n_f32(1.0f + 0.01f * static_cast<float>(i));
  const float32x4_t a = vdupq_n_f32(-0.001f), b = vdupq_n_f32(1.0f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (int i = 0; i < 24; ++i) x[i] = vfmaq_f32(b, x[i], a);
  }
  for (int i = 1; i < 24; ++i) x[0] = vaddq_f32(x[0], x[i]);
  return vgetq_lane_f32(x[0], 0);
}
#endif

#if defined(__arm__)
#pragma GCC push_options
#pragma GCC target("fpu=neon-vfpv4")
float ComputeNeon(int64_t rounds) {
  float32x4_t x[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = vdupq_n_f32(1.0f + 0.01f * static_cast<float>(i));
  const float32x4_t a = vdupq_n_f32(0.001f), b = vdupq_n_f32(1e-7f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = vfmaq_f32(x[i], a, b);
  }
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) x[0] = vaddq_f32(x[0], x[i]);
  return vgetq_lane_f32(x[0], 0);
}

uint64_t ReadNeon(const uint64_t* data, int64_t words) {
  uint64x2_t any[8] = {};
  for (int64_t w = 0; w < words; w += 16) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) any[i] = vorrq_u64(any[i], vld1q_u64(data + w + 2 * i));
  }
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) any[0] = vorrq_u64(any[0], any[i]);
  return vgetq_lane_u64(any[0], 0);
}
#pragma GCC pop_options
#endif

// For CPUs without the instruction sets above. On x86-64 without AVX2 it compiles to multiplications and additions of
// four numbers.
using Vector4 = float __attribute__((vector_size(16)));
float ComputePlain(int64_t rounds) {
  Vector4 x[12];
  for (int i = 0; i < 12; ++i) x[i] = Vector4{} + (1.0f + 0.01f * static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) x[i] = x[i] * 0.999f + 0.001f;
  }
  for (int i = 1; i < 12; ++i) x[0] += x[i];
  return x[0][0];
}

uint64_t ReadPlain(const uint64_t* data, int64_t words) {
  uint64_t any[8] = {};
  for (int64_t w = 0; w < words; w += 8) {
    for (int i = 0; i < 8; ++i) any[i] |= data[w + i];
  }
  for (int i = 1; i < 8; ++i) any[0] |= any[i];
  return any[0];
}

// All yardsticks that this CPU can run. The widest is not always the fastest, because wide vectors lower the clock of
// some CPUs.
std::vector<Yardstick> Yardsticks() {
  std::vector<Yardstick> yardsticks = {{2.0 * 4 * 12, ComputePlain, ReadPlain}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    yardsticks.push_back({2.0 * 8 * 12, ComputeAvx2, ReadAvx2});
  }
  if (__builtin_cpu_supports("avx512f")) yardsticks.push_back({2.0 * 16 * 16, ComputeAvx512, ReadAvx512});
#elif defined(__aarch64__)
  yardsticks.push_back({2.0 * 4 * 24, ComputeNeon, ReadPlain});
#elif defined(__arm__)
  const unsigned long present = getauxval(AT_HWCAP), needed = HWCAP_NEON | HWCAP_VFPv4;
  if ((present & needed) == needed) yardsticks.push_back({2.0 * 4 * 8, ComputeNeon, ReadNeon});
#endif
  return yardsticks;
}

constexpr double kSecondsPerMeasurement = 0.03;  // minimum time of all repeats of a measurement
constexpr int kReadRepeatsMin = 3;               // minimum number of repeats

// The shortest time in seconds of several runs of `body`.
template <typename Body>
double BestSeconds(const Body& body) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity(), total = 0;
  for (int i = 0; i < kReadRepeatsMin || total < kSecondsPerMeasurement; ++i) {
    const Clock::time_point start = Clock::now();
    body();
    const double seconds = SecondsSince(start);
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

template <typename Body>
void ParallelFor(ThreadPool& pool, int64_t count, Body& body) {
  pool.parallel()->parallel_for(
      pool.parallel(), [](void* closure, int64_t index) { (*static_cast<Body*>(closure))(index); }, &body, count);
}

double MeasureFlops(ThreadPool& pool, const Yardstick& yardstick) {
  constexpr int64_t kRounds = 20000;         // about 50 microseconds
  const int64_t tasks = 8 * pool.threads();  // several tasks per thread, so that a thread that starts late costs little
  std::atomic<float> sink = 0;
  auto task = [&](int64_t) { sink.store(yardstick.compute(kRounds), std::memory_order_relaxed); };
  const double seconds = BestSeconds([&] { ParallelFor(pool, tasks, task); });
  return yardstick.flops_per_round * static_cast<double>(kRounds * tasks) / seconds;
}

// The read bandwidth of one yardstick. Each task reads its own piece of `data` many times, so that the start of threads
// and the first fill of the cache are negligible. If `data` has fewer pieces than there are threads, tasks share
// pieces.
double MeasureReadBy(ThreadPool& pool, const Yardstick& yardstick, std::span<const uint64_t> data) {
  constexpr int64_t kWordsPerTask = int64_t{4} << 20;  // 8-byte words that a task reads, in several passes
  const auto words = static_cast<int64_t>(data.size());
  const int64_t pieces = std::min<int64_t>(pool.threads(), words / kReadWords);
  const int64_t piece = words / pieces / kReadWords * kReadWords;
  const int64_t passes = std::max<int64_t>(1, kWordsPerTask / piece);
  std::atomic<uint64_t> sink = 0;
  auto task = [&](int64_t index) {
    for (int64_t pass = 0; pass < passes; ++pass) {
      sink.store(yardstick.read(data.data() + index % pieces * piece, piece), std::memory_order_relaxed);
    }
  };
  const double seconds = BestSeconds([&] { ParallelFor(pool, pool.threads(), task); });
  return 8.0 * static_cast<double>(piece * passes) * pool.threads() / seconds;
}

// The number of CPUs in a list of the kernel: 5 for "0-3,8". 1 if the text is no such list.
int CountCpus(std::istream& list) {
  int count = 0, first = 0;
  while (list >> first) {
    int last = first;
    char separator = 0;
    if (list.get(separator) && separator == '-') list >> last >> separator;
    count += last - first + 1;
  }
  return std::max(count, 1);
}

// The size in bytes of all data caches of level `level` that `threads` threads use together. 0 if there is no such
// level or the system does not report it. The source is sysfs, because it says which CPUs share a cache; the C library
// reports the sum over the socket.
uint64_t CacheBytes(int level, int threads) {
  for (int index = 0;; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    int found = 0;
    if (!(std::ifstream(folder + "level") >> found)) return 0;
    std::string type;
    uint64_t kibibytes = 0;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> kibibytes;
    if (found != level || type == "Instruction") continue;
    std::ifstream sharing(folder + "shared_cpu_list");
    const int sharers = CountCpus(sharing);
    return (kibibytes << 10) * static_cast<uint64_t>((threads + sharers - 1) / sharers);
  }
}

uint64_t InstalledBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  constexpr uint64_t kSmallBoard = uint64_t{256} << 20;  // bytes, if the system does not report its memory
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : kSmallBoard;
}

}  // namespace

double Roofline::LowerBoundSeconds(double flops, double bytes) const {
  double seconds = flops / flops_per_second;
  for (const Level& level : levels) {
    if (bytes > static_cast<double>(level.bytes)) continue;
    return std::max(seconds, bytes / level.bytes_per_second);
  }
  return seconds;
}

Roofline RooflineWithCache(double flops_per_second, int64_t cache_bytes, double cache_bytes_per_second,
                           double memory_bytes_per_second) {
  Roofline roofline{.flops_per_second = flops_per_second, .levels = {}};
  if (cache_bytes > 0) roofline.levels.push_back({static_cast<uint64_t>(cache_bytes), cache_bytes_per_second});
  roofline.levels.push_back({UINT64_MAX, memory_bytes_per_second});
  return roofline;
}

double MeasureReadBandwidth(ThreadPool& pool, std::span<const uint64_t> data) {
  double best = 0;
  for (const Yardstick& yardstick : Yardsticks()) best = std::max(best, MeasureReadBy(pool, yardstick, data));
  return best;
}

Roofline MeasureRoofline(ThreadPool& pool) {
  Roofline roofline;
  for (const Yardstick& yardstick : Yardsticks()) {
    roofline.flops_per_second = std::max(roofline.flops_per_second, MeasureFlops(pool, yardstick));
  }
  constexpr uint64_t kUnknownLevel2 = uint64_t{512} << 10;  // bytes per core, as on small boards
  // Threads beyond the number of cores share the cores' caches.
  const int cores = std::min(pool.threads(), static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  uint64_t level2 = CacheBytes(2, cores);
  if (level2 == 0) level2 = kUnknownLevel2 * static_cast<uint64_t>(cores);
  const uint64_t level3 = CacheBytes(3, cores);
  // The working set for memory must exceed all caches together, and must be a small part of the installed memory.
  const uint64_t most = std::max(InstalledBytes() / 8, 2 * level2);
  const uint64_t memory = std::min(std::max({4 * level3, 2 * level2, uint64_t{64} << 20}), most);

  const size_t words = static_cast<size_t>(memory / 8);
  const auto data = std::make_unique<uint64_t[]>(words);  // zeroed, so that every page is mapped before the measurement
  const auto add_level = [&](uint64_t limit, uint64_t working_set) {
    roofline.levels.push_back({limit, MeasureReadBandwidth(pool, {data.get(), static_cast<size_t>(working_set / 8)})});
  };
  add_level(level2, level2 / 2);
  if (level3 > level2) add_level(level3, std::min(level3 / 2, memory));
  add_level(std::numeric_limits<uint64_t>::max(), memory);
  return roofline;
}

}  // namespace hone
