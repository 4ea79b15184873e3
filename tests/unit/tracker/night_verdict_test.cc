// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/night_verdict.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace hone::tracker {
namespace {

v1::FleetNight NightOf(double milliseconds) {
  v1::FleetNight night;
  night.set_median_seconds(milliseconds / 1000);
  night.set_spread(0.001);
  night.set_target("cpu");
  night.mutable_environment()->set_kernel("6.1.0-18");
  night.mutable_environment()->set_governor("performance");
  return night;
}

v1::FleetNight Missed(const std::string& problem) {
  v1::FleetNight night;
  night.set_problem(problem);
  return night;
}

// The nights of a device, judged one after another as they come.
struct History {
  std::vector<v1::FleetNight> nights = {};
  double slower_than = 0.03;

  NightVerdict Add(v1::FleetNight night) {
    NightVerdict verdict = JudgeNight(nights, night, slower_than);
    night.set_verdict(verdict.verdict);
    nights.push_back(std::move(night));
    return verdict;
  }
  void AddAll(std::initializer_list<double> milliseconds) {
    for (const double each : milliseconds) Add(NightOf(each));
  }
};

TEST(NightVerdictTest, TheFirstNightHasNothingToBeComparedWith) {
  const NightVerdict verdict = History().Add(NightOf(10));
  EXPECT_EQ(verdict.verdict, v1::FLEET_VERDICT_OK);
  EXPECT_EQ(verdict.reference_seconds, 0);
  EXPECT_EQ(verdict.cause, "");
}

TEST(NightVerdictTest, ANightBeyondTheLimitIsSlowerThanTheMedianOfTheGoodOnes) {
  History history;
  history.AddAll({10, 10.1, 9.9});
  const NightVerdict verdict = history.Add(NightOf(11));
  EXPECT_EQ(verdict.verdict, v1::FLEET_VERDICT_SLOWER);
  EXPECT_NEAR(verdict.change, 0.1, 1e-9);
  EXPECT_NEAR(verdict.reference_seconds, 0.01, 1e-12);
  EXPECT_EQ(verdict.cause, "nothing that the agent reports has changed");
}

TEST(NightVerdictTest, ASlowDownWithinTheLimitIsOk) {
  History history;
  history.AddAll({10, 10, 10});
  EXPECT_EQ(history.Add(NightOf(10.29)).verdict, v1::FLEET_VERDICT_OK);
  EXPECT_EQ(history.Add(NightOf(10.31)).verdict, v1::FLEET_VERDICT_SLOWER);
}

TEST(NightVerdictTest, NightsThatDifferMuchAllowMore) {
  History history;
  history.AddAll({10, 11, 9, 10.5, 9.5});
  EXPECT_EQ(history.Add(NightOf(11.5)).verdict, v1::FLEET_VERDICT_OK) << "a night differs by 12% from the next";
  EXPECT_EQ(history.Add(NightOf(15)).verdict, v1::FLEET_VERDICT_SLOWER);
}

TEST(NightVerdictTest, WithFewNightsTheSpreadOfTheRunsCounts) {
  History history;
  v1::FleetNight noisy = NightOf(10);
  noisy.set_spread(0.05);
  history.Add(noisy);
  EXPECT_EQ(history.Add(NightOf(11)).verdict, v1::FLEET_VERDICT_OK);
}

TEST(NightVerdictTest, ARegressionDoesNotBecomeTheReference) {
  History history;
  history.AddAll({10, 10, 10});
  for (int night = 0; night < 20; ++night) {
    EXPECT_EQ(history.Add(NightOf(12)).verdict, v1::FLEET_VERDICT_SLOWER) << night;
  }
  EXPECT_EQ(history.Add(NightOf(10)).verdict, v1::FLEET_VERDICT_OK);
}

TEST(NightVerdictTest, AnAcceptedNightIsTheReferenceOfThoseAfterIt) {
  History history;
  history.AddAll({10, 10, 10, 10, 12});
  history.nights.back().set_accepted(true);
  const NightVerdict next = history.Add(NightOf(12.1));
  EXPECT_EQ(next.verdict, v1::FLEET_VERDICT_OK) << next.cause;
  EXPECT_EQ(next.reference_seconds, 0.012);
  history.AddAll({12, 12, 12, 12, 12, 12, 12});
  for (const v1::FleetNight& night : history.nights) {
    EXPECT_NE(night.verdict(), v1::FLEET_VERDICT_DRIFT) << "the first nights no longer count";
  }
  EXPECT_EQ(history.Add(NightOf(13)).verdict, v1::FLEET_VERDICT_SLOWER);
}

TEST(NightVerdictTest, AFasterLevelBecomesTheReference) {
  History history;
  history.AddAll({10, 10, 10, 10, 10});
  const NightVerdict faster = history.Add(NightOf(8));
  EXPECT_EQ(faster.verdict, v1::FLEET_VERDICT_FASTER);
  EXPECT_NEAR(faster.change, -0.2, 1e-9);
  history.AddAll({8, 8, 8, 8, 8, 8});
  EXPECT_EQ(history.Add(NightOf(10)).verdict, v1::FLEET_VERDICT_SLOWER);
}

TEST(NightVerdictTest, SmallStepsInOneDirectionAreADrift) {
  History history;
  std::vector<v1::FleetVerdict> verdicts;
  double milliseconds = 10;
  for (int night = 0; night < 20; ++night, milliseconds *= 1.004) {
    verdicts.push_back(history.Add(NightOf(milliseconds)).verdict);
    EXPECT_NE(verdicts.back(), v1::FLEET_VERDICT_SLOWER) << "each night is little slower than the recent ones";
    if (verdicts.back() == v1::FLEET_VERDICT_DRIFT) break;
  }
  ASSERT_EQ(verdicts.back(), v1::FLEET_VERDICT_DRIFT);
  EXPECT_GE(verdicts.size(), 10u);
}

TEST(NightVerdictTest, ADriftIsToldAgainstTheFirstNights) {
  History history;
  history.AddAll({10, 10, 10, 10, 10, 10.2, 10.2, 10.2, 10.25, 10.3, 10.35, 10.4});
  for (v1::FleetNight& night : history.nights) night.set_verdict(v1::FLEET_VERDICT_OK);
  v1::FleetNight tonight = NightOf(10.4);
  tonight.mutable_environment()->set_kernel("6.1.0-22");
  const NightVerdict verdict = history.Add(tonight);
  ASSERT_EQ(verdict.verdict, v1::FLEET_VERDICT_DRIFT);
  EXPECT_NEAR(verdict.change, 0.035, 1e-9);
  EXPECT_EQ(verdict.reference_seconds, 0.01);
  EXPECT_EQ(verdict.cause, "the kernel changed from 6.1.0-18 to 6.1.0-22 since the first nights");
}

TEST(NightVerdictTest, ANightThatDidNotRunSaysWhyAndIsNotComparedWith) {
  History history;
  history.AddAll({10, 10});
  const NightVerdict verdict = history.Add(Missed("waited 6h for board/cpu, which is offline"));
  EXPECT_EQ(verdict.verdict, v1::FLEET_VERDICT_DID_NOT_RUN);
  EXPECT_EQ(verdict.cause, "waited 6h for board/cpu, which is offline");
  EXPECT_EQ(history.Add(NightOf(10)).verdict, v1::FLEET_VERDICT_OK);
}

TEST(NightVerdictTest, AChangedEnvironmentIsToldOnce) {
  History history;
  history.AddAll({10, 10, 10});
  v1::FleetNight changed = NightOf(10);
  changed.mutable_environment()->set_governor("powersave");
  changed.mutable_environment()->set_driver("535.1");
  const NightVerdict verdict = history.Add(changed);
  EXPECT_EQ(verdict.verdict, v1::FLEET_VERDICT_CHANGED);
  EXPECT_EQ(verdict.cause,
            "the governor changed from performance to powersave; the driver changed from none to 535.1 since the last "
            "night");
  EXPECT_EQ(history.Add(changed).verdict, v1::FLEET_VERDICT_OK);
}

TEST(NightVerdictTest, TheCauseOfASlowDownIsWhatDiffersFromTheLastGoodNight) {
  History history;
  history.AddAll({10, 10, 10});
  v1::FleetNight slow = NightOf(12);
  slow.mutable_environment()->set_kernel("6.1.0-22");
  for (int night = 0; night < 2; ++night) {
    const NightVerdict verdict = history.Add(slow);
    EXPECT_EQ(verdict.verdict, v1::FLEET_VERDICT_SLOWER);
    EXPECT_EQ(verdict.cause, "the kernel changed from 6.1.0-18 to 6.1.0-22 since the last good night") << night;
  }
}

TEST(NightVerdictTest, SensorsExplainASlowDown) {
  History history;
  for (int night = 0; night < 3; ++night) {
    v1::FleetNight good = NightOf(10);
    good.set_clock_mhz(1755);
    good.set_temperature_c(61);
    history.Add(good);
  }
  v1::FleetNight slow = NightOf(12);
  slow.set_clock_mhz(1400);
  slow.set_temperature_c(83);
  EXPECT_EQ(JudgeNight(history.nights, slow, 0.03).cause,
            "the clock was 1400 MHz, before 1755 MHz; the device had 83 C, before 61 C");
  slow.set_throttled(true);
  EXPECT_EQ(JudgeNight(history.nights, slow, 0.03).cause,
            "the device was throttled at 83 C; the clock was 1400 MHz, before 1755 MHz");
  slow.clear_temperature_c();
  slow.set_clock_mhz(1750);
  EXPECT_EQ(JudgeNight(history.nights, slow, 0.03).cause, "the device was throttled");
}

}  // namespace
}  // namespace hone::tracker
