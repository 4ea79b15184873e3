// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;

TEST(DecomposeMovement, Trilu) {
  const Constant x = RandomTensor({2, 3, 3}, 1);
  ExpectAsOnnxRuntime("trilu", {"Trilu", {x}});
  ExpectAsOnnxRuntime("trilu_lower", {"Trilu", {x, Ints({}, {-1})}, {{"upper", Int(0)}}}, {.constants = {1}});
}

TEST(DecomposeMovement, ExpandDims) {
  const Constant x = RandomTensor({2, 3}, 1);
  ExpectAsOnnxRuntime("expand_dims", {"ExpandDims", {x, Int32s({}, {1})}}, {.constants = {1}});
  ExpectAsOnnxRuntime("expand_dims_last", {"ExpandDims", {x, Int32s({}, {-1})}}, {.constants = {1}});
  EXPECT_THAT(RunDecomposed({"ExpandDims", {x, Int32s({}, {1})}}).status().message(), HasSubstr("--bind"));
}

TEST(DecomposeMovement, Pad) {
  const Constant x = RandomTensor({2, 3}, 1);
  ExpectAsOnnxRuntime("pad", {"Pad", {x, Ints({4}, {1, 0, 0, 2}), Floats({1}, {5})}}, {.constants = {1}});
  ExpectAsOnnxRuntime("pad_edge", {"Pad", {x, Ints({1, 4}, {1, 0, 0, 2})}, {{"mode", std::string("edge")}}},
                      {.constants = {1}});
  ExpectAsOnnxRuntime("pad_cut", {"Pad", {x, Ints({4}, {0, -1, 1, 0})}}, {.constants = {1}});
}

TEST(DecomposeMovement, GatherAndRange) {
  const Constant x = RandomTensor({2, 3, 2}, 1);
  ExpectAsOnnxRuntime("gather_nd", {"GatherND", {x, Ints({2, 2}, {0, 1, 1, 2})}});
  ExpectDecomposed({"TorchEmbedding", {Floats({2, 2}, {1, 2, 3, 4}), Ints({3}, {1, 0, 1})}}, {3, 2},
                   {3, 4, 1, 2, 3, 4});
  const DecomposeOptions all{.constants = {0, 1, 2}};
  ExpectAsOnnxRuntime("range", {"Range", {Floats({}, {1}), Floats({}, {4}), Floats({}, {0.75})}}, all);
  ExpectAsOnnxRuntime("range_steps_of_1", {"Range", {Int32s({}, {2}), Int32s({}, {5})}}, all);
}

TEST(DecomposeMovement, UnfoldTensor) {
  const Constant x = RandomTensor({2, 5, 2}, 1);
  ExpectAsOnnxRuntime("unfold", {"UnfoldTensor", {x}, {{"dim", Int(1)}, {"size", Int(3)}, {"step", Int(2)}}});
  ExpectAsOnnxRuntime("unfold_last", {"UnfoldTensor", {x}, {{"size", Int(2)}}});
  EXPECT_THAT(RunDecomposed({"UnfoldTensor", {x}, {{"size", Int(3)}}}).status().message(), HasSubstr("do not fit"));
}

TEST(DecomposeMovement, GridSample) {
  const Constant x = RandomTensor({1, 2, 3, 3}, 1), grid = RandomTensor({1, 2, 2, 2}, 2);
  ExpectAsOnnxRuntime("grid_sample", {"GridSample", {x, grid}});
  for (const char* mode : {"nearest", "bicubic"}) {
    ExpectAsOnnxRuntime(
        std::string("grid_sample_") + mode,
        {"GridSample",
         {x, grid},
         {{"mode", std::string(mode)}, {"padding_mode", std::string("border")}, {"align_corners", Int(1)}}});
  }
}

// ONNX Runtime has no CPU kernels for BiasAdd, BiasSoftmax and GatedAdd.
TEST(DecomposeMovement, Sums) {
  const Constant x = Floats({1, 2, 2}, {1, 2, 3, 4}), bias = Floats({2}, {10, 20});
  ExpectDecomposed({"BiasAdd", {x, bias, Floats({1, 2, 2}, {5, 6, 7, 8})}}, {1, 2, 2}, {16, 28, 20, 32});
  ExpectDecomposed({"GatedAdd", {x, x, Floats({1, 2, 1}, {2, 3})}}, {1, 2, 2}, {3, 6, 12, 16});
  const auto share = [](double a, double b) { return std::exp(a) / (std::exp(a) + std::exp(b)); };
  ExpectDecomposed({"BiasSoftmax", {Floats({1, 2}, {1, 2}), Floats({1, 2}, {3, 0})}}, {1, 2},
                   {share(4, 2), share(2, 4)});
  ExpectDecomposed({"BiasSoftmax", {Floats({1, 2, 1}, {1, 2}), Floats({1, 1, 1}, {3})}}, {1, 2, 1},
                   {share(4, 5), share(5, 4)});
}

TEST(DecomposeMovement, DropoutAtInference) {
  const Constant x = Floats({2, 2}, {1, 2, 3, 4}), bias = Floats({2}, {10, 20}), ratio = Floats({}, {0.5});
  const OpCase residual{.op = "BiasDropout", .inputs = {x, bias, Floats({2, 2}, {1, 1, 1, 1}), ratio}, .outputs = 2};
  ExpectDecomposed(residual, {2, 2}, {12, 23, 14, 25});
  ExpectDecomposed(residual, {2, 2}, {1, 1, 1, 1}, {}, 1);
  ExpectDecomposed({"BitmaskBiasDropout", {x, bias}}, {2, 2}, {11, 22, 13, 24});
  ExpectDecomposed({"BitmaskDropout", {x, ratio, Bools({}, {0})}}, {2, 2}, {1, 2, 3, 4}, {.constants = {2}});
  EXPECT_THAT(RunDecomposed({"BitmaskDropout", {x, ratio, Bools({}, {1})}}, {.constants = {2}}).status().message(),
              HasSubstr("training mode"));
}

TEST(DecomposeMovement, CDist) {
  const Constant a = RandomTensor({3, 2}, 1), b = RandomTensor({2, 2}, 2);
  ExpectAsOnnxRuntime("cdist", {"CDist", {a, b}});
  ExpectAsOnnxRuntime("cdist_root", {"CDist", {a, b}, {{"metric", std::string("euclidean")}}});
}

// The buckets are those of T5: with 8 in all and both directions, 4 per direction, of which 2 are for single distances.
TEST(DecomposeMovement, RelativePositionBias) {
  const Constant table = Counting({8, 1});
  const DecomposeOptions lengths{.constants = {1, 2}};
  ExpectDecomposed({"RelativePositionBias",
                    {table, Ints({1}, {2}), Ints({1}, {6})},
                    {{"max_distance", Int(4)}, {"is_bidirectional", Int(1)}}},
                   {1, 1, 2, 6}, {0, 5, 6, 7, 7, 7, 1, 0, 5, 6, 7, 7}, lengths);
  ExpectDecomposed(
      {"RelativePositionBias", {Counting({4, 1}), Ints({1}, {6}), Ints({1}, {2})}, {{"max_distance", Int(4)}}},
      {1, 1, 6, 2}, {0, 0, 1, 0, 2, 1, 3, 2, 3, 3, 3, 3}, lengths);
}

}  // namespace
}  // namespace hone::graph
