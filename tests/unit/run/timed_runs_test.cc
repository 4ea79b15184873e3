// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/timed_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace hone::run {
namespace {

using ::testing::ElementsAre;

TEST(TimeInTurnsTest, RunsTakeTurnsAndTheWarmUpIsNotRecorded) {
  std::string order, recorded;
  const std::vector<hone::run::Run> runs = {[&] { return order += 'a', absl::OkStatus(); },
                                            [&] { return order += 'b', absl::OkStatus(); }};
  ASSERT_TRUE(TimeInTurns(0, runs, [&](size_t run, double seconds) {
                EXPECT_GE(seconds, 0);
                recorded += static_cast<char>('a' + run);
              }).ok());
  EXPECT_EQ(order, "abababab");
  EXPECT_EQ(recorded, "ababab");
}

TEST(TimeInTurnsTest, TheFirstErrorEndsIt) {
  int count = 0;
  const std::vector<hone::run::Run> runs = {
      [] { return absl::OkStatus(); }, [&] { return ++count == 3 ? absl::InternalError("no") : absl::OkStatus(); }};
  EXPECT_EQ(TimeInTurns(100, runs, [](size_t, double) {}).message(), "no");
}

TEST(SpreadValuesTest, FewValuesStayAsTheyAre) {
  SpreadValues values(4);
  for (const double value : {3, 1, 2, 5}) values.Add(value);
  EXPECT_THAT(values.values(), ElementsAre(3, 1, 2, 5));
  EXPECT_EQ(values.count(), 4);
}

TEST(SpreadValuesTest, ManyValuesStayEvenlySpread) {
  SpreadValues values(100);
  for (int i = 0; i < 12'345; ++i) {
    values.Add(i);
    ASSERT_LE(values.values().size(), 100u);
  }
  EXPECT_EQ(values.count(), 12'345);
  ASSERT_GT(values.values().size(), 49u);
  const double stride = values.values()[1];
  EXPECT_EQ(std::exp2(std::round(std::log2(stride))), stride);
  for (size_t i = 0; i < values.values().size(); ++i) ASSERT_EQ(values.values()[i], stride * static_cast<double>(i));
}

TEST(MinuteCurveTest, EachRunCountsInTheMinuteInWhichItEnds) {
  MinuteCurve curve(100);
  const double begin = 1000;
  for (const auto& [end, seconds] :
       std::vector<std::pair<double, double>>{{10, 10}, {30, 20}, {59, 2}, {61, 5}, {200, 7}}) {
    curve.Add(begin + end, seconds);
  }
  const std::vector<MinuteCurve::Minute> minutes = curve.Take();
  ASSERT_EQ(minutes.size(), 4u);
  EXPECT_EQ(minutes[0].runs, 3);
  EXPECT_EQ(minutes[0].median_seconds, 10);
  EXPECT_EQ(minutes[1].runs, 1);
  EXPECT_EQ(minutes[2].runs, 0);
  EXPECT_EQ(minutes[2].median_seconds, 0);
  EXPECT_EQ(minutes[3].runs, 1);
  EXPECT_EQ(minutes[3].median_seconds, 7);
}

// A measurement of two minutes ends a little after them.
TEST(MinuteCurveTest, AShortLastMinuteIsLeftOut) {
  MinuteCurve curve(100), only(100);
  for (const double end : {30, 90, 121}) curve.Add(end, 1);
  EXPECT_EQ(curve.Take().size(), 2u);
  only.Add(1, 1);
  EXPECT_EQ(only.Take().size(), 1u);
}

TEST(MinuteCurveTest, AMinuteOfManyRunsTakesLittleMemory) {
  MinuteCurve curve(100);
  for (int i = 1; i <= 50'000; ++i) curve.Add(1e-3 * i, 1e-3);
  const std::vector<MinuteCurve::Minute> minutes = curve.Take();
  ASSERT_EQ(minutes.size(), 1u);
  EXPECT_EQ(minutes[0].runs, 50'000);
  EXPECT_EQ(minutes[0].median_seconds, 1e-3);
}

}  // namespace
}  // namespace hone::run
