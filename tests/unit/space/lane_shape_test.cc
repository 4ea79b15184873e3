// SPDX-License-Identifier: Apache-2.0
// The cost model of lane tiles, where their search begins: obvious comparisons come out right.
#include "compiler/space/templates/lane_shape.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <tuple>

#include "compiler/schedule/grid.h"
#include "compiler/space/space.h"
#include "compiler/space/templates/lane_instruction.h"
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

// A 3x3 convolution with as many input channels as output channels.
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
  EXPECT_EQ(UnrolledSteps(shape, 4096), 1);  // results take the registers
  const LaneShape small = BestLaneShape(Product(256), H100());
  EXPECT_LT(small.width * small.rows * small.lanes(), shape.width * shape.rows * shape.lanes());
}

TEST(LaneShape, TilesFitTheImage) {
  const LaneShape shape = BestLaneShape(Convolution(1, 512, 7), H100());
  EXPECT_EQ(shape.rows * shape.lanes_y * shape.more_rows * shape.lanes_z % 7, 0);
}

std::vector<std::string_view> Architectures() {
  return {target::kCudaEntry.words.begin() + 1,
          target::kCudaEntry.words.end()};  // the first word is the device of this machine
}

// 256 lanes of 136 registers each exceed a group's registers on some devices; 1024 lanes do on all.
TEST(LaneShape, AGroupHasItsRegisters) {
  const LaneShape tall{.width = 8, .rows = 8, .lanes_x = 16, .lanes_y = 16};
  const LaneShape crowd{.width = 8, .rows = 8, .lanes_x = 32, .lanes_y = 32};
  for (const std::string_view word : Architectures()) {
    const target::Target target = target::ParseTarget(word).value();
    EXPECT_EQ(std::isinf(LaneCycles(Product(2048), tall, target)), word == "cuda:sm_53" || word == "cuda:sm_62")
        << word;
    EXPECT_TRUE(std::isinf(LaneCycles(Product(2048), crowd, target))) << word;
    EXPECT_FALSE(std::isinf(LaneCycles(Product(2048), BestLaneShape(Product(2048), target), target))) << word;
  }
  const auto instruction = ir::TensorInstruction::kMmaF16;
  LaneShape together{.width = 8, .rows = 8, .lanes_x = 16, .lanes_y = 16, .staged = 16};
  EXPECT_FALSE(std::isinf(InstructionCycles(Product(2048), together, instruction, H100())));
  together.lanes_y = 64;
  EXPECT_TRUE(std::isinf(InstructionCycles(Product(2048), together, instruction, H100())));
}

// A unit with more memory, lanes or groups runs more groups at a time, and so takes less time.
TEST(LaneShape, AUnitRunsTheGroupsThatItHolds) {
  const target::Target small = target::ParseTarget("cuda:sm_86").value();
  const LaneShape wide{.lanes_x = 16, .lanes_y = 4};  // stages 60 KB
  target::Target more = small;
  more.memory.unit_shared_bytes *= 2;
  EXPECT_LT(LaneCycles(Convolution(32, 64, 56), wide, more), LaneCycles(Convolution(32, 64, 56), wide, small));
  const LaneShape few{.rows = 1, .lanes_x = 2, .lanes_y = 1};
  more = small;
  more.hierarchy.unit_groups *= 2;
  EXPECT_LT(LaneCycles(Product(2048), few, more), LaneCycles(Product(2048), few, small));
  const LaneShape many{.width = 1, .rows = 1, .lanes_x = 32, .lanes_y = 8};
  const target::Target turing = target::ParseTarget("cuda:sm_75").value();
  more = turing;
  more.hierarchy.unit_lanes *= 2;
  EXPECT_LT(LaneCycles(Product(2048), many, more), LaneCycles(Product(2048), many, turing));
}

std::vector<schedule::Grid> DefaultGrids(const std::string& text, std::string_view target) {
  const Candidate candidate = Default(ir::ParseWorkload(text).value(), target::ParseTarget(target).value()).value();
  std::vector<schedule::Grid> grids = schedule::Grids(candidate.state);
  for (schedule::Grid& grid : grids) grid.root = nullptr;  // it points into the candidate, which ends here
  return grids;
}

// Three groups fit into a unit, even if its shared memory is small.
TEST(LaneDefaults, GroupsShareTheMemoryOfAUnit) {
  for (const char* target : {"cuda:sm_80", "cuda:sm_86", "cuda:sm_89"}) {
    const std::vector<schedule::Grid> grids = DefaultGrids(R"(workload "matmul"
input x: f32[2048,2048] in [-1, 1]
const w: f32[2048,2048] in [-1, 1]
t: f32[2048,2048] over i:2048, j:2048 = sum k:2048 of x[i, k] * w[k, j]
output t
)",
                                                           target);
    for (const schedule::Grid& grid : grids) {
      EXPECT_LE(3 * grid.shared_bytes, target::ParseTarget(target)->memory.unit_shared_bytes) << target;
    }
  }
}

// The results of one channel share only a window's few weights, so tiles do not pay.
TEST(LaneDefaults, ADepthwiseConvolutionWithChannelsFirstKeepsLanesBusy) {
  for (const auto& [channels, size, window] : {std::tuple(64, 48, 3), {32, 112, 3}, {384, 14, 5}, {960, 7, 7}}) {
    const std::string text = fmt::format(R"(workload "depthwise_conv2d"
input x: f32[1,{0},{2},{2}] in [-1, 1]
const w: f32[{0},1,{3},{3}] in [-1, 1]
t: f32[1,{0},{1},{1}] over n:1, c:{0}, i:{1}, j:{1} = sum r:{3}, s:{3} of x[n, c, i + r, j + s] * w[c, 0, r, s]
output t
)",
                                         channels, size, size + window - 1, window);
    for (const std::string_view word : Architectures()) {
      for (const schedule::Grid& grid : DefaultGrids(text, word)) EXPECT_GE(grid.lanes, 32) << word << ", " << size;
    }
  }
}

TEST(LaneShape, SmallDevicesNeedNoParts) {
  EXPECT_EQ(BestLaneShape(Convolution(1, 64, 56), target::ParseTarget("cuda:sm_53").value()).parts, 1);
}

}  // namespace
}  // namespace hone::space
