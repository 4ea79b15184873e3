// SPDX-License-Identifier: Apache-2.0
#include "base/paired_ratio.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "base/random.h"

namespace hone {
namespace {

// Times in turns as a noisy machine gives them: a load that comes and goes and that neighbours share, spikes, and
// noise of each run.
struct Series {
  std::vector<double> first, second;
};
Series Noisy(uint64_t seed, double slower, size_t pairs) {
  Random random(seed);
  Series series;
  double load = 0;
  for (size_t i = 0; i < pairs; ++i) {
    load = 0.95 * load + 0.01 * (random.Uniform() - 0.5);
    const auto time = [&] {
      return 1e-3 * std::exp(load + 0.02 * random.Uniform()) * (random.Uniform() < 0.02 ? 3 : 1);
    };
    series.first.push_back(time());
    series.second.push_back(time() * slower);
  }
  return series;
}

int Alarms(double slower, double limit) {
  int alarms = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    const Series series = Noisy(seed, slower, 200);
    alarms += ComparePaired(series.first, series.second)->IsSlowerBy(limit);
  }
  return alarms;
}

TEST(PairedRatioTest, OneInAHundredOfEqualSeriesSeemsSlower) {
  const int alarms = Alarms(1, 0);
  EXPECT_LE(alarms, 20);
  EXPECT_GE(alarms, 3) << "the interval is wider than it says";
}

TEST(PairedRatioTest, EqualSeriesPassAGateAndSlowOnesDoNot) {
  EXPECT_EQ(Alarms(1, 0.03), 0);
  EXPECT_GE(Alarms(1.05, 0.03), 950);
  EXPECT_LE(Alarms(1.03, 0.03), 20) << "exactly at the limit";
}

TEST(PairedRatioTest, TheRatioIsThatOfTheSecondToTheFirst) {
  const std::vector<double> first(100, 2), second(100, 3);
  const std::optional<PairedRatio> ratio = ComparePaired(first, second);
  ASSERT_TRUE(ratio.has_value());
  EXPECT_NEAR(ratio->ratio, 1.5, 1e-12);
  EXPECT_NEAR(ratio->low, 1.5, 1e-12);
  EXPECT_EQ(ratio->pairs, 100u);
  EXPECT_TRUE(ratio->IsSlowerBy(0.4));
  EXPECT_FALSE(ratio->IsSlowerBy(0.5));
}

TEST(PairedRatioTest, FewPairsAndTimesOfZeroAreNotCompared) {
  EXPECT_FALSE(ComparePaired(std::vector<double>(39, 1), std::vector<double>(100, 1)).has_value());
  std::vector<double> times(100, 1);
  times[50] = 0;
  EXPECT_FALSE(ComparePaired(times, std::vector<double>(100, 1)).has_value());
}

}  // namespace
}  // namespace hone
