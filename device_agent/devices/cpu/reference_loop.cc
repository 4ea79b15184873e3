// SPDX-License-Identifier: Apache-2.0
#include "device_agent/devices/cpu/reference_loop.h"

#include <algorithm>

#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

constexpr int kNumbers = 64;
constexpr int kRounds = 4000;
// x -> x/2 + 1 has its fixed point at 2, reached exactly.
constexpr float kFactor = 0.5f, kTerm = 1.0f, kEnd = 2.0f;

// noinline, and its result is used, so that the compiler neither folds nor moves the work.
[[gnu::noinline]] float MultiplyAdd(int rounds, float start) {
  float numbers[kNumbers];
  for (float& number : numbers) number = start;
  for (int round = 0; round < rounds; ++round) {
    for (float& number : numbers) number = number * kFactor + kTerm;
    asm volatile("" : : "r"(numbers) : "memory");
  }
  float worst = numbers[0];
  for (const float number : numbers) worst = std::max(worst, number);
  return worst;
}

}  // namespace

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

}  // namespace hone::agent
