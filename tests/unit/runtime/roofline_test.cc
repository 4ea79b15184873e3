// SPDX-License-Identifier: Apache-2.0
// Tests of the roofline: its arithmetic, and that measured rates are plausible.
#include "base/roofline.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace hone {
namespace {

TEST(RooflineTest, LowerBoundIsTheLargerOfComputingAndReading) {
  const Roofline roofline = {100, {{10, 50}, {1000, 5}, {std::numeric_limits<uint64_t>::max(), 1}}};
  EXPECT_DOUBLE_EQ(roofline.LowerBoundSeconds(200, 10), 2.0);     // computing
  EXPECT_DOUBLE_EQ(roofline.LowerBoundSeconds(0, 10), 0.2);       // reading from the first level
  EXPECT_DOUBLE_EQ(roofline.LowerBoundSeconds(0, 11), 2.2);       // from the second
  EXPECT_DOUBLE_EQ(roofline.LowerBoundSeconds(100, 2000), 2000);  // from memory
  EXPECT_DOUBLE_EQ(roofline.LowerBoundSeconds(0, 0), 0.0);
}

TEST(RooflineTest, MeasuresThisMachine) {
  ThreadPool pool(0);
  const Roofline roofline = MeasureRoofline(pool);
  EXPECT_GT(roofline.flops_per_second, 1e7);
  EXPECT_LT(roofline.flops_per_second, 1e15);
  ASSERT_GE(roofline.levels.size(), 2u);
  EXPECT_EQ(roofline.levels.back().bytes, std::numeric_limits<uint64_t>::max());
  for (size_t i = 0; i < roofline.levels.size(); ++i) {
    EXPECT_GT(roofline.levels[i].bytes_per_second, 1e6) << i;
    EXPECT_TRUE(i == 0 || roofline.levels[i].bytes > roofline.levels[i - 1].bytes);
    RecordProperty("level_" + std::to_string(i), std::to_string(roofline.levels[i].bytes_per_second * 1e-9));
  }
  RecordProperty("gflops", std::to_string(roofline.flops_per_second * 1e-9));
}

// With so many threads, their second-level caches together exceed the memory that the measurement reads.
TEST(RooflineTest, ThreadsMayBeMoreThanCores) {
  ThreadPool pool(160);
  EXPECT_GT(MeasureRoofline(pool).levels.back().bytes_per_second, 1e6);
}

TEST(RooflineTest, ThreadsMayBeMoreThanThereIsToRead) {
  ThreadPool pool(9);
  const std::vector<uint64_t> words(3 * 64);
  const double bytes_per_second = MeasureReadBandwidth(pool, words);
  EXPECT_GT(bytes_per_second, 1e6);
  EXPECT_LT(bytes_per_second, 1e15);
}

}  // namespace
}  // namespace hone
