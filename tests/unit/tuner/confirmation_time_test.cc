// SPDX-License-Identifier: Apache-2.0
#include "tuner/confirmation_time.h"

#include <gtest/gtest.h>

namespace hone::tuner {
namespace {

TEST(ConfirmationTimeTest, IsATwentiethOfTheSearchOrAHundredRuns) {
  EXPECT_EQ(ModelSeconds(10, 0.001), kModelSecondsMin);
  EXPECT_EQ(ModelSeconds(100, 0.001), 5);
  EXPECT_EQ(ModelSeconds(1e6, 0.001), kModelSecondsFull);
  EXPECT_EQ(ModelSeconds(10, 0), kModelSecondsMin) << "not known";
  EXPECT_EQ(ModelSeconds(10, 0.3), 30);
  EXPECT_EQ(ModelSeconds(10, 100), kModelSecondsMax);
  EXPECT_GT(ConfirmationSeconds(10, 0.001, 100), ConfirmationSeconds(10, 0.001, 1));
}

}  // namespace
}  // namespace hone::tuner
