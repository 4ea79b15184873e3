// SPDX-License-Identifier: Apache-2.0
#include "tuner/speed_factor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace hone::tuner {
namespace {

TEST(SpeedFactorTest, WithMoreTimingsMoreOfADifferenceIsPutDownToTheDevice) {
  SpeedFactor speed_factor;
  LatencyEstimate once = {1.0, 1}, often = {1.0, 9}, confirmed = {1.0, kConfirmedTimings};
  EXPECT_NEAR(*speed_factor.Update(once, 1.1), std::sqrt(1.1), 1e-9);
  EXPECT_NEAR(once.seconds, std::sqrt(1.1), 1e-9);
  EXPECT_EQ(once.timings, 2);
  EXPECT_NEAR(*speed_factor.Update(often, 1.1), std::pow(1.1, 0.9), 1e-9);
  EXPECT_NEAR(*speed_factor.Update(confirmed, 1.1), 1.1, 1e-6);
  EXPECT_NEAR(confirmed.seconds, 1, 1e-6);
  EXPECT_EQ(confirmed.timings, kConfirmedTimings);
}

TEST(SpeedFactorTest, ADisturbedVisitChangesNoEstimate) {
  SpeedFactor speed_factor;
  LatencyEstimate estimate = {1.0, 3};
  for (const double seconds : {2.0, 0.5}) {
    EXPECT_FALSE(speed_factor.Update(estimate, seconds).has_value()) << seconds;
    EXPECT_EQ(estimate.seconds, 1);
    EXPECT_EQ(estimate.timings, 3);
    EXPECT_EQ(speed_factor.Update(estimate, 1.0), 1.0) << "and it is over";
    estimate = {1.0, 3};
  }
}

TEST(SpeedFactorTest, AfterAcceptNextVisitTheFirstVisitSetsTheFactor) {
  SpeedFactor speed_factor;
  speed_factor.AcceptNextVisit();
  LatencyEstimate estimate = {1.0, 1};
  EXPECT_EQ(speed_factor.Update(estimate, 2.0), 2.0);
  EXPECT_EQ(estimate.seconds, 1);
  EXPECT_FALSE(speed_factor.Update(estimate, 1.0).has_value()) << "a disturbance of that day";
}

TEST(SpeedFactorTest, ASecondVisitAtAnotherSpeedChangesTheFactor) {
  SpeedFactor speed_factor;
  LatencyEstimate estimate = {1.0, 1};
  EXPECT_FALSE(speed_factor.Update(estimate, 2.0).has_value());
  EXPECT_NEAR(*speed_factor.Update(estimate, 2.1), 2.1, 1e-9);
  EXPECT_EQ(estimate.seconds, 1);
  EXPECT_EQ(speed_factor.value(), 2.1);
  EXPECT_NEAR(*speed_factor.Update(estimate, 2.1), 2.1, 1e-9);
}

// All kernels take 1 s. In each round one takes 1% less by luck, and it is the incumbent of the next round.
TEST(SpeedFactorTest, LuckyTimesDoNotAccumulate) {
  SpeedFactor speed_factor;
  LatencyEstimate best = {1.0, 1};
  for (int round = 0; round < 100; ++round) {
    const double divisor = *speed_factor.Update(best, 1.0);
    const double lucky = 0.99 / divisor;
    if (lucky < best.seconds) best = {lucky, 1};
  }
  EXPECT_GT(best.seconds, 0.975);
}

}  // namespace
}  // namespace hone::tuner
