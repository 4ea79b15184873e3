// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/value_range.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::quantize {
namespace {

using ::testing::FloatNear;

std::vector<float> Normal(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) {  // the sum of twelve uniform numbers
    value = -6;
    for (int i = 0; i < 12; ++i) value += static_cast<float>(random.Uniform());
  }
  return values;
}

Histogram Of(const std::vector<float>& values) {
  Histogram histogram;
  histogram.Add(values);
  return histogram;
}

TEST(Histogram, KeepsItsCountsWhenItWidens) {
  Histogram histogram;
  for (const float value : {0.001F, -0.002F, 0.0F, 3.0F, -700.0F, 0.0F}) histogram.Add({&value, 1});
  EXPECT_EQ(histogram.total(), 6);
  EXPECT_EQ(histogram.zeros(), 2);
  EXPECT_EQ(histogram.low(), -700);
  EXPECT_EQ(histogram.high(), 3);
  int64_t sum = 0, below = 0;
  for (int bin = 0; bin < Histogram::kBins; ++bin) {
    sum += histogram.counts()[static_cast<size_t>(bin)];
    if (histogram.CenterOf(bin) < -1) below += histogram.counts()[static_cast<size_t>(bin)];
  }
  EXPECT_EQ(sum, 6);
  EXPECT_EQ(below, 1) << "-700 alone";
}

TEST(Histogram, TakesTheLargestNumbers) {
  const Histogram histogram = Of({3.4e38F, -3.4e38F, 1.0F, 2e38F});
  EXPECT_EQ(histogram.total(), 4);
  for (const RangeMethod method : {RangeMethod::kPercentile, RangeMethod::kSquaredError}) {
    const ValueRange range = ChooseRange(histogram, method, 100);
    EXPECT_GT(range.high, 2.5e38F) << static_cast<int>(method);
    EXPECT_LT(range.low, -2.5e38F) << static_cast<int>(method);
  }
}

TEST(ChooseRange, MinMaxTakesAllAndZero) {
  EXPECT_EQ(ChooseRange(Of({2, 5}), RangeMethod::kMinMax, 0), (ValueRange{0, 5}));
  EXPECT_EQ(ChooseRange(Of({-2, -1}), RangeMethod::kMinMax, 0), (ValueRange{-2, 0}));
  EXPECT_EQ(ChooseRange(Histogram(), RangeMethod::kMinMax, 0), (ValueRange{0, 0}));
}

TEST(ChooseRange, PercentileAndEntropyLeaveOutAnOutlier) {
  std::vector<float> values = Normal(100'000, 1);
  values.push_back(100);
  const Histogram histogram = Of(values);
  for (const RangeMethod method : {RangeMethod::kPercentile, RangeMethod::kEntropy}) {
    const ValueRange range = ChooseRange(histogram, method, 99.9);
    EXPECT_LT(range.high, 30) << static_cast<int>(method);
    EXPECT_LE(range.low, -2) << static_cast<int>(method);
  }
}

// No range of the candidates has a smaller error than the chosen one.
TEST(ChooseRange, SquaredErrorIsSmallest) {
  const Histogram histogram = Of(Normal(50'000, 2));
  const ValueRange chosen = ChooseRange(histogram, RangeMethod::kSquaredError, 0);
  const double error = MeanSquaredError(histogram, chosen);
  for (float low = -6; low < 0; low += 0.25F) {
    for (float high = 0.25F; high < 6; high += 0.25F) {
      EXPECT_LE(error, MeanSquaredError(histogram, {low, high}) * 1.02) << low << " " << high;
    }
  }
}

TEST(ScaleOf, ZeroIsExact) {
  const ByteScale scale = ScaleOf({-1, 3});
  EXPECT_THAT(scale.scale, FloatNear(4.0F / 255, 1e-7F));
  EXPECT_EQ(scale.zero_point, 64);
  EXPECT_EQ(ScaleOf({0, 2}).zero_point, 0);
  EXPECT_EQ(ScaleOf({-2, 0}).zero_point, 255);
  EXPECT_EQ(ScaleOf({0, 0}).scale, 1) << "every value is 0";
}

}  // namespace
}  // namespace hone::quantize
