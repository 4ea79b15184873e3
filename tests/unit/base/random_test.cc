// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace hone {
namespace {

TEST(Random, SequenceOfSplitMix64) {
  Random random(0);
  EXPECT_EQ(random.Next(), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(random.Next(), 0x6e789e6aa1b965f4ULL);
}

TEST(Random, GeneratorsOfOneSeedDoNotOverlap) {
  std::set<uint64_t> numbers;
  for (uint64_t n = 0; n < 8; ++n) {
    Random random = Random::Nth(1, n);
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(numbers.insert(random.Next()).second) << n << ": " << i;
  }
}

TEST(Random, HighHalvesByPartsAreThoseOfTheWideProduct) {
  constexpr uint64_t kMax = ~uint64_t{0};
  EXPECT_EQ(HighHalfByParts(kMax, kMax), kMax - 1);
  EXPECT_EQ(HighHalfByParts(uint64_t{1} << 32, uint64_t{1} << 32), 1u);
  EXPECT_EQ(HighHalfByParts(kMax, 1), 0u);
  Random random(7);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t a = random.Next() >> (i % 64), b = random.Next() >> (i / 16 % 64);
    ASSERT_EQ(HighHalfByParts(a, b), HighHalf(a, b)) << a << " " << b;
  }
}

TEST(Random, BelowStaysInRangeAndReachesBothEnds) {
  Random random(1);
  bool low = false, high = false;
  for (int i = 0; i < 1000; ++i) {
    const int64_t value = random.Below(3);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 3);
    low |= value == 0;
    high |= value == 2;
  }
  EXPECT_TRUE(low && high);
}

}  // namespace
}  // namespace hone
