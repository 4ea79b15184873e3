#include "device_agent/reference_loop.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace hone::agent {
namespace {

constexpr int kLanes = 64;
constexpr int kRounds = 4000;
// x -> x/2 + 1 has its fixed point at 2, reached exactly.
constexpr float kFactor = 0.5f, kTerm = 1.0f, kEnd = 2.0f;

// noinline and a result that is used: the compiler must neither fold nor move the work.
[[gnu::noinline]] float MultiplyAdd(int rounds, float start) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = start;
  for (int round = 0; round < rounds; ++round) {
    for (float& lane : lanes) lane = lane * kFactor + kTerm;
    asm volatile("" : : "r"(lanes) : "memory");
  }
  float worst = lanes[0];
  for (const float lane : lanes) worst = std::max(worst, lane);
  return worst;
}

[[gnu::noinline]] int64_t SumOf(const int64_t* begin, const int64_t* end) {
  int64_t sum = 0;
  for (const int64_t* p = begin; p != end; ++p) sum += *p;
  return sum;
}

}  // namespace

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ReferenceLoopSeconds() {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = SecondsNow();
    volatile float result = MultiplyAdd(kRounds, static_cast<float>(i));
    (void)result;
    best = std::min(best, SecondsNow() - start);
  }
  return best;
}

bool ReferenceLoopIsRight() { return MultiplyAdd(kRounds, 3.0f) == kEnd; }

double MeasureGflops(HoneParallel* parallel, int threads) {
  constexpr int kRoundsPerTask = 200'000;
  const double start = SecondsNow();
  parallel->parallel_for(
      parallel,
      [](void*, int64_t) {
        volatile float result = MultiplyAdd(kRoundsPerTask, 1.0f);
        (void)result;
      },
      nullptr, threads);
  return 2.0 * kLanes * kRoundsPerTask * threads / (SecondsNow() - start) * 1e-9;
}

double MeasureBandwidth(HoneParallel* parallel, int threads) {
  struct Work {
    std::vector<int64_t> memory;
    int64_t tasks;
  };
  // Far beyond usual last-level shares of one core, small enough for a board.
  Work work{std::vector<int64_t>(static_cast<size_t>(threads) << 22, 1), threads};
  const double start = SecondsNow();
  parallel->parallel_for(
      parallel,
      [](void* closure, int64_t i) {
        const Work& work = *static_cast<Work*>(closure);
        const int64_t share = static_cast<int64_t>(work.memory.size()) / work.tasks;
        volatile int64_t sum = SumOf(work.memory.data() + i * share, work.memory.data() + (i + 1) * share);
        (void)sum;
      },
      &work, threads);
  return static_cast<double>(work.memory.size() * sizeof(int64_t)) / (SecondsNow() - start) * 1e-9;
}

}  // namespace hone::agent
