// SPDX-License-Identifier: Apache-2.0
#include "base/half_float.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone {
namespace {

TEST(HalfFloat, HalfRoundsToNearestEven) {
  EXPECT_EQ(HalfBits(1.0), 0x3c00);
  EXPECT_EQ(HalfBits(-2.0), 0xc000);
  EXPECT_EQ(HalfBits(65504), 0x7bff);
  EXPECT_EQ(HalfBits(65519.99), 0x7bff);
  EXPECT_EQ(HalfBits(65520), 0x7c00);
  EXPECT_EQ(HalfBits(0x1p-24), 0x0001);
  EXPECT_EQ(HalfBits(0x1p-25), 0x0000);  // a tie, to even
  EXPECT_EQ(HalfBits(0x1.000001p-25), 0x0001);
  EXPECT_EQ(HalfBits(1.0 + 0x1p-11), 0x3c00);      // a tie, to even
  EXPECT_EQ(HalfBits(1.0 + 3 * 0x1p-11), 0x3c02);  // a tie, to even
  EXPECT_EQ(HalfBits(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(HalfBits(-0.0), 0x8000);
  EXPECT_EQ(HalfBits(5e-324), 0x0000);
  EXPECT_EQ(HalfBits(std::nan("")), 0x7e00);
}

TEST(HalfFloat, EverySixteenBitPatternSurvives) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const double half = FromHalfBits(pattern), bfloat = FromBFloatBits(pattern);
    if (!std::isnan(half)) {
      ASSERT_EQ(HalfBits(half), pattern);
    }
    if (!std::isnan(bfloat)) {
      ASSERT_EQ(BFloatBits(bfloat), pattern);
    }
  }
}

}  // namespace
}  // namespace hone
