// SPDX-License-Identifier: Apache-2.0
// Lane tiles that run over the ends of a product: their innermost loops have no conditions, and instructions still
// apply.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/space/space.h"
#include "tests/unit/space/lowered.h"

namespace hone::space {
namespace {

using ::testing::HasSubstr;

std::string MatrixProduct(int m, int n, int k) {
  return fmt::format(R"(workload "matmul"
input x: f32[{0},{2}] in [-1, 1]
input w: f32[{2},{1}] in [-1, 1]
t: f32[{0},{1}] over i:{0}, j:{1} = sum k:{2} of x[i, k] * w[k, j]
u: f32[{0},{1}] over ui:{0}, uj:{1} = max(t[ui, uj], 0.0f32)
output u
)",
                     m, n, k);
}

std::string PaddedConvolution(int size, int in, int out) {
  return fmt::format(R"(workload "conv2d"
input x: f32[1,{0},{0},{1}] in [-1, 1]
const w: f32[{2},{1},3,3] in [-1, 1]
p: f32[1,{3},{3},{1}] over n:1, h:{3}, v:{3}, c:{1} = select(h >= 1 && h < {4} && v >= 1 && v < {4},
  x[n, h - 1, v - 1, c], 0.0f32)
y: f32[1,{0},{0},{2}] over n1:1, h1:{0}, v1:{0}, o:{2} = sum ci:{1}, r:3, s:3 of p[n1, h1 + r, v1 + s, ci] *
  w[o, ci, r, s]
output y
)",
                     size, in, out, size + 2, size + 1);
}

Candidate DefaultOf(const std::string& text, const std::string& target) {
  return Default(ir::ParseWorkload(text).value(), target::ParseTarget(target).value()).value();
}

struct Ends {
  const char* name;
  std::string text;
};
std::ostream& operator<<(std::ostream& out, const Ends& ends) { return out << ends.name; }

const Ends kEnds[] = {
    {"columns", MatrixProduct(512, 1000, 256)},    {"even_columns", MatrixProduct(512, 510, 256)},
    {"odd_columns", MatrixProduct(512, 255, 256)}, {"one_tile_of_columns", MatrixProduct(512, 150, 256)},
    {"rows", MatrixProduct(197, 768, 768)},        {"image", PaddedConvolution(14, 64, 112)},
    {"small_image", PaddedConvolution(7, 64, 96)}};

class LaneEnds : public ::testing::TestWithParam<Ends> {};

// The products have no conditions: shared memory is filled to the end of the tile, and only its fill and the last store
// check the axis' end.
TEST_P(LaneEnds, AddNoConditionsToProducts) {
  for (const char* target : {"cuda:sm_75", "cuda:sm_87"}) {
    int products = 0;
    const Candidate candidate = DefaultOf(GetParam().text, target);
    for (const schedule::Nest& nest : candidate.state.nests) {
      const bool sums_parts = nest.stage.value.As<ir::Load>() != nullptr;
      if (nest.stage.reduction != ir::Reduction::kSum || sums_parts) continue;
      const ir::Binary* product = nest.stage.value.As<ir::Binary>();
      ASSERT_NE(product, nullptr) << target << "\n" << schedule::Print(candidate.schedule);
      EXPECT_TRUE(product->a.As<ir::Load>() != nullptr && product->b.As<ir::Load>() != nullptr)
          << target << "\n"
          << schedule::Print(candidate.schedule);
      ++products;
    }
    EXPECT_GE(products, 1);
  }
}

TEST_P(LaneEnds, DoNotPreventTensorInstructions) {
  for (const char* target : {"cuda:sm_80 -tf32", "cuda:sm_90a -tf32"}) {
    EXPECT_THAT(schedule::Print(DefaultOf(GetParam().text, target).schedule), HasSubstr("tensorize")) << target;
  }
}

INSTANTIATE_TEST_SUITE_P(Products, LaneEnds, ::testing::ValuesIn(kEnds),
                         [](const auto& test) { return test.param.name; });

// Odd sizes give tiles that are as long as their axis or as a row of lanes, and tiles without pairs of rows.
TEST(LaneEndsOfAnySize, DoNotPreventTensorInstructions) {
  for (const char* target : {"cuda:sm_80 -tf32", "cuda:sm_87 -tf32"}) {
    for (int m = 9; m <= 140; ++m) {
      EXPECT_THAT(schedule::Print(DefaultOf(MatrixProduct(m, 3072, 768), target).schedule), HasSubstr("tensorize"))
          << target << ", " << m;
    }
    for (int size = 5; size <= 15; ++size) {
      EXPECT_THAT(schedule::Print(DefaultOf(PaddedConvolution(size, 512, 512), target).schedule),
                  HasSubstr("tensorize"))
          << target << ", " << size;
    }
  }
}

TEST(LaneEnds, AreRight) {
  for (const char* target : {"cuda:sm_75", "cuda:sm_80 -tf32"}) {
    for (const std::string& text : {MatrixProduct(21, 38, 40), PaddedConvolution(5, 16, 12)}) {
      const ir::Workload workload = ir::ParseWorkload(text).value();
      const Candidate candidate = DefaultOf(text, target);
      EXPECT_EQ(tests::CheckLowered(workload, candidate.schedule, target::ParseTarget(target).value(), {1e-3, 1e-3}),
                absl::OkStatus())
          << target << "\n"
          << schedule::Print(candidate.schedule);
    }
  }
}

}  // namespace
}  // namespace hone::space
