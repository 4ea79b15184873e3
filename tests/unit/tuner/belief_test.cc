// SPDX-License-Identifier: Apache-2.0
#include "tuner/belief.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace hone::tuner {
namespace {

TEST(PaceTest, TheMoreOftenSomethingWasTimedTheMoreOfADifferenceIsTheDevices) {
  Pace pace;
  Belief once = {1.0, 1}, often = {1.0, 9}, confirmed = {1.0, kConfirmed};
  EXPECT_NEAR(*pace.Meet(once, 1.1), std::sqrt(1.1), 1e-9);
  EXPECT_NEAR(once.seconds, std::sqrt(1.1), 1e-9);
  EXPECT_EQ(once.times, 2);
  EXPECT_NEAR(*pace.Meet(often, 1.1), std::pow(1.1, 0.9), 1e-9);
  EXPECT_NEAR(*pace.Meet(confirmed, 1.1), 1.1, 1e-6);
  EXPECT_NEAR(confirmed.seconds, 1, 1e-6);
  EXPECT_EQ(confirmed.times, kConfirmed);
}

TEST(PaceTest, ADisturbanceTeachesNothing) {
  Pace pace;
  Belief belief = {1.0, 3};
  for (const double seconds : {2.0, 0.5}) {
    EXPECT_FALSE(pace.Meet(belief, seconds).has_value()) << seconds;
    EXPECT_EQ(belief.seconds, 1);
    EXPECT_EQ(belief.times, 3);
    EXPECT_EQ(pace.Meet(belief, 1.0), 1.0) << "and it is over";
    belief = {1.0, 3};
  }
}

TEST(PaceTest, OfAnotherDayTheFirstVisitTellsThePace) {
  Pace pace;
  pace.Forget();
  Belief belief = {1.0, 1};
  EXPECT_EQ(pace.Meet(belief, 2.0), 2.0);
  EXPECT_EQ(belief.seconds, 1);
  EXPECT_FALSE(pace.Meet(belief, 1.0).has_value()) << "a disturbance of that day";
}

TEST(PaceTest, TheSecondVisitAtAnotherPaceShowsThatItIsTheDevices) {
  Pace pace;
  Belief belief = {1.0, 1};
  EXPECT_FALSE(pace.Meet(belief, 2.0).has_value());
  EXPECT_NEAR(*pace.Meet(belief, 2.1), 2.1, 1e-9);
  EXPECT_EQ(belief.seconds, 1);
  EXPECT_EQ(pace.now(), 2.1);
  EXPECT_NEAR(*pace.Meet(belief, 2.1), 2.1, 1e-9);
}

// All kernels take 1 s. In each round one takes 1% less by luck, and it is the incumbent of the next round.
TEST(PaceTest, LuckDoesNotAddUp) {
  Pace pace;
  Belief best = {1.0, 1};
  for (int round = 0; round < 100; ++round) {
    const double divisor = *pace.Meet(best, 1.0);
    const double lucky = 0.99 / divisor;
    if (lucky < best.seconds) best = {lucky, 1};
  }
  EXPECT_GT(best.seconds, 0.975);
}

}  // namespace
}  // namespace hone::tuner
