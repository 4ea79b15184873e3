// Where the search of lane tiles begins: that the model of a unit says what is plain.
#include "compiler/space/templates/lane_shape.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::space {
namespace {

using ::testing::ElementsAre;

target::Target H100() { return target::ParseTarget("cuda:sm_90").value(); }

LaneWork Product(int64_t n) {
  LaneWork work;
  work.columns = work.rows = work.steps = n;
  work.column_bytes = work.row_bytes = 4;
  return work;
}

// 3x3, with as many channels in as out.
LaneWork Convolution(int64_t batch, int64_t channels, int64_t size) {
  LaneWork work;
  work.columns = work.steps = channels;
  work.rows = work.more_rows = size;
  work.others = batch;
  work.window = 9;
  work.column_bytes = work.row_bytes = 36;
  work.row_growth = work.more_growth = 1.0 / 3;
  return work;
}

TEST(LaneShape, SizesArePowersOfTwoAndDivisors) {
  EXPECT_THAT(LaneSizes(56, 30), ElementsAre(1, 2, 4, 7, 8, 14, 16, 28));
  EXPECT_THAT(LaneSizes(7, 30), ElementsAre(1, 2, 4, 7, 8));
  EXPECT_THAT(LaneSizes(1, 30), ElementsAre(1));
}

TEST(LaneShape, PartsDivideAndAreNotTooShort) {
  EXPECT_THAT(LaneParts(128), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(LaneParts(12), ElementsAre(1));
}

TEST(LaneShape, FewResultsOfALongReductionGoInParts) {
  EXPECT_GT(BestLaneShape(Convolution(1, 512, 7), H100()).parts, 4);
  EXPECT_EQ(BestLaneShape(Convolution(32, 64, 56), H100()).parts, 1);
  EXPECT_EQ(BestLaneShape(Product(4096), H100()).parts, 1);
}

TEST(LaneShape, LargeProductsHaveLargeTiles) {
  const LaneShape shape = BestLaneShape(Product(4096), H100());
  EXPECT_EQ(shape.lanes(), 256);
  EXPECT_EQ(shape.width * shape.rows, 128);
  EXPECT_EQ(StepsWrittenOut(shape, 4096), 1);  // registers are for results
  const LaneShape small = BestLaneShape(Product(256), H100());
  EXPECT_LT(small.width * small.rows * small.lanes(), shape.width * shape.rows * shape.lanes());
}

TEST(LaneShape, TilesFitTheImage) {
  const LaneShape shape = BestLaneShape(Convolution(1, 512, 7), H100());
  EXPECT_EQ(shape.rows * shape.lanes_y * shape.more_rows * shape.lanes_z % 7, 0);
}

TEST(LaneShape, SmallDevicesNeedNoParts) {
  EXPECT_EQ(BestLaneShape(Convolution(1, 64, 56), target::ParseTarget("cuda:sm_53").value()).parts, 1);
}

}  // namespace
}  // namespace hone::space
