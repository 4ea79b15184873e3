// SPDX-License-Identifier: Apache-2.0
#include "base/median.h"

#include <limits>

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(MedianTest, IsTheMiddleOfAnOddCount) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({5, 5, 1, 9, 5}), 5);
}

TEST(MedianTest, IsTheMeanOfTheTwoInTheMiddleOfAnEvenCount) {
  EXPECT_EQ(Median({1, 2}), 1.5);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Median({100, 2, 2, -100}), 2);
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(Median({most, most}), most);
}

TEST(MedianDeathTest, EmptyInputAborts) { EXPECT_DEATH(Median({}), ""); }

}  // namespace
}  // namespace hone
