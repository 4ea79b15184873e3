// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

TEST(ConvOps, OneDimension) {
  const Constant x = Floats({1, 1, 4}, {1, 2, 3, 4}), w = Floats({1, 1, 2}, {1, 10});
  ExpectOutput({"Conv", {x, w}}, {1, 1, 3}, {21, 32, 43});
  ExpectOutput({"Conv", {x, w, Floats({1}, {100})}}, {1, 1, 3}, {121, 132, 143});
  ExpectOutput({"Conv", {x, w}, {{"strides", IntList({2})}}}, {1, 1, 2}, {21, 43});
  ExpectOutput({"Conv", {x, w}, {{"dilations", IntList({3})}}}, {1, 1, 1}, {41});
  ExpectOutput({"Conv", {x, w}, {{"pads", IntList({1, 0})}}}, {1, 1, 4}, {10, 21, 32, 43});
  ExpectOutput({"Conv", {x, w}, {{"auto_pad", std::string("SAME_UPPER")}}}, {1, 1, 4}, {21, 32, 43, 4});
  ExpectOutput({"Conv", {x, w}, {{"auto_pad", std::string("SAME_LOWER")}}}, {1, 1, 4}, {10, 21, 32, 43});
  ExpectOutput({"Conv", {Floats({0, 1, 4}, {}), w}}, {0, 1, 3}, {});
}

TEST(ConvOps, GroupsAndDepthwise) {
  const Constant x = Floats({1, 4, 1}, {1, 2, 3, 4});
  ExpectOutput({"Conv", {x, Floats({2, 2, 1}, {1, 10, 1, 10})}, {{"group", Int(2)}}}, {1, 2, 1}, {21, 43});
  ExpectOutput({"Conv", {x, Floats({4, 1, 1}, {2, 3, 4, 5})}, {{"group", Int(4)}}}, {1, 4, 1}, {2, 6, 12, 20});
  ExpectOutput({"Conv", {Floats({1, 2, 1}, {1, 2}), Floats({4, 1, 1}, {1, 2, 3, 4})}, {{"group", Int(2)}}}, {1, 4, 1},
               {1, 2, 6, 8});
}

TEST(ConvOps, ChannelsLastGivesTheSameNumbers) {
  const Constant w = Floats({2, 2, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  const OpCase first{"Conv", {Floats({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6}), w}, {{"pads", IntList({1, 0, 0, 0})}}};
  ExpectOutput(first, {1, 2, 3, 1}, {18, 37, 47, 38, 85, 111});
  OpCase last{"Conv", {Floats({1, 3, 1, 2}, {1, 4, 2, 5, 3, 6}), w}, first.attributes};
  last.attributes["layout"] = std::string("NHWC");
  ExpectOutput(last, {1, 3, 1, 2}, {18, 38, 37, 85, 47, 111});
}

TEST(ConvOps, HalvesAreSummedWide) {
  const Constant x = Tensor(DType::kFloat16, {1, 3, 1}, {2048, 1, 1}),
                 w = Tensor(DType::kFloat16, {1, 3, 1}, {1, 1, 1});
  ExpectOutput({"Conv", {x, w}}, {1, 1, 1}, {2050});
}

TEST(ConvOps, Integers) {
  const DType u8 = DType::kUInt8;
  const Constant x = Tensor(u8, {1, 1, 3}, {1, 2, 3}), w = Tensor(u8, {1, 1, 2}, {1, 1});
  ExpectOutput({"ConvInteger", {x, w, Tensor(u8, {}, {1})}, {{"pads", IntList({1, 1})}}}, {1, 1, 4}, {0, 1, 3, 2});
  ExpectOutput({"ConvInteger", {x, w, Absent(), Tensor(u8, {1}, {2})}}, {1, 1, 2}, {-3, -5});
  const Constant half = Floats({}, {0.5}), one = Floats({}, {1}), zero = Tensor(u8, {}, {0});
  ExpectOutput(
      {"QLinearConv", {x, half, zero, w, one, zero, one, Tensor(u8, {}, {10}), Tensor(DType::kInt32, {1}, {4})}},
      {1, 1, 2}, {14, 14});  // round(3.5) + 10, 4.5: to even
}

TEST(ConvTransposeOps, PhasesAndTests) {
  const Constant x = Floats({1, 1, 3}, {1, 2, 3}), w = Floats({1, 1, 3}, {1, 10, 100});
  ExpectOutput({"ConvTranspose", {x, w}}, {1, 1, 5}, {1, 12, 123, 230, 300});
  ExpectOutput({"ConvTranspose", {x, w}, {{"strides", IntList({2})}}}, {1, 1, 7}, {1, 10, 102, 20, 203, 30, 300});
  ExpectOutput({"ConvTranspose", {x, w}, {{"strides", IntList({2})}, {"pads", IntList({1, 2})}}}, {1, 1, 4},
               {10, 102, 20, 203});
  ExpectOutput({"ConvTranspose", {x, w}, {{"strides", IntList({2})}, {"output_padding", IntList({1})}}}, {1, 1, 8},
               {1, 10, 102, 20, 203, 30, 300, 0});
  ExpectOutput({"ConvTranspose", {x, w}, {{"dilations", IntList({2})}}}, {1, 1, 7}, {1, 2, 13, 20, 130, 200, 300});
  ExpectOutput({"ConvTranspose", {x, w}, {{"dilations", IntList({2})}, {"strides", IntList({2})}}}, {1, 1, 9},
               {1, 0, 12, 0, 123, 0, 230, 0, 300});
  ExpectOutput({"ConvTranspose", {x, w}, {{"strides", IntList({2})}, {"output_shape", IntList({5})}}}, {1, 1, 5},
               {10, 102, 20, 203, 30});
}

// The phase in which the infinity meets the second tap has no third tap.
TEST(ConvTransposeOps, InfinitySpoilsOnlyWhatReadsIt) {
  const Constant x = Floats({1, 1, 3}, {1, kInf, 3}), w = Floats({1, 1, 3}, {1, 10, 100});
  ExpectOutput({"ConvTranspose", {x, w}, {{"strides", IntList({2})}}}, {1, 1, 7}, {1, 10, kInf, kInf, kInf, 30, 300});
  ExpectOutput({"ConvTranspose",
                {Floats({1, 2, 2}, {kInf, 1, 1, kNan}), Floats({2, 1, 3}, {1, 2, 3, 1, 2, 3})},
                {{"strides", IntList({2})}, {"group", Int(2)}}},
               {1, 2, 5}, {kInf, kInf, kInf, 2, 3, 1, 2, kNan, kNan, kNan});
}

TEST(ConvTransposeOps, Groups) {
  ExpectOutput({"ConvTranspose",
                {Floats({1, 2, 1}, {1, 2}), Floats({2, 2, 1}, {1, 2, 3, 4}), Floats({4}, {0, 0, 0, 1})},
                {{"group", Int(2)}}},
               {1, 4, 1}, {1, 2, 6, 9});
}

TEST(PoolOps, Max) {
  const Constant x = Floats({1, 1, 5}, {1, 5, 2, 5, 0});
  auto pool = [&](std::map<std::string, Attribute> attributes, int outputs = 1) {
    attributes["kernel_shape"] = IntList({2});
    return OpCase{"MaxPool", {x}, attributes, 12, outputs};
  };
  ExpectOutput(pool({{"strides", IntList({2})}}), {1, 1, 2}, {5, 5});
  ExpectOutput(pool({{"strides", IntList({2})}, {"ceil_mode", Int(1)}}), {1, 1, 3}, {5, 5, 0});
  ExpectOutput(pool({{"dilations", IntList({2})}}), {1, 1, 3}, {2, 5, 2});
  ExpectOutput(pool({{"pads", IntList({1, 1})}}, 2), {1, 1, 6}, {0, 1, 1, 3, 3, 4}, 1);
  ExpectOutput({"MaxPool", {Floats({1, 1, 1}, {-7})}, {{"kernel_shape", IntList({2})}, {"pads", IntList({1, 1})}}},
               {1, 1, 2}, {-7, -7});  // the padding never wins
}

// The padding is as small as the smallest elements.
TEST(PoolOps, PadsHaveNoIndices) {
  const std::map<std::string, Attribute> padded = {
      {"kernel_shape", IntList({2, 2})}, {"strides", IntList({2, 2})}, {"pads", IntList({1, 1, 1, 1})}};
  const std::vector<std::pair<DType, double>> types = {
      {DType::kUInt8, 0}, {DType::kInt8, -128}, {DType::kFloat32, -kInf}};
  for (const auto& [dtype, lowest] : types) {
    std::vector<double> numbers(16, lowest);
    numbers[15] = 9;
    ExpectOutput({"MaxPool", {Tensor(dtype, {1, 1, 4, 4}, numbers)}, padded, 12, 2}, {1, 1, 3, 3},
                 {0, 1, 3, 4, 5, 7, 12, 13, 15}, 1);
  }
}

TEST(PoolOps, TheIndexOfNanIsItsPlace) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    ExpectOutput({"MaxPool",
                  {Tensor(dtype, {1, 1, 6}, {1, 3, kNan, kNan, 2, 1})},
                  {{"kernel_shape", IntList({3})}, {"pads", IntList({1, 1})}},
                  12,
                  2},
                 {1, 1, 6}, {1, 2, 2, 2, 3, 4}, 1);
  }
}

TEST(PoolOps, IndicesOfPlanesByRowAndColumn) {
  const Constant x = Counting({2, 1, 2, 3});
  auto pool = [&](int64_t order) {
    return OpCase{"MaxPool", {x}, {{"kernel_shape", IntList({2, 2})}, {"storage_order", Int(order)}}, 12, 2};
  };
  ExpectOutput(pool(0), {2, 1, 1, 2}, {4, 5, 10, 11}, 1);
  ExpectOutput(pool(1), {2, 1, 1, 2}, {3, 5, 9, 11}, 1);
}

TEST(PoolOps, AverageCountsWhatItShould) {
  const Constant x = Floats({1, 1, 3}, {2, 4, 6});
  auto pool = [&](std::map<std::string, Attribute> attributes) {
    attributes["kernel_shape"] = IntList({2});
    return OpCase{"AveragePool", {x}, attributes, 19};
  };
  ExpectOutput(pool({}), {1, 1, 2}, {3, 5});
  ExpectOutput(pool({{"pads", IntList({1, 1})}}), {1, 1, 4}, {2, 3, 5, 6});
  ExpectOutput(pool({{"pads", IntList({1, 1})}, {"count_include_pad", Int(1)}}), {1, 1, 4}, {1, 3, 5, 3});
  ExpectOutput(pool({{"strides", IntList({2})}, {"ceil_mode", Int(1)}}), {1, 1, 2}, {3, 6});
  ExpectOutput(pool({{"strides", IntList({2})}, {"ceil_mode", Int(1)}, {"count_include_pad", Int(1)}}), {1, 1, 2},
               {3, 6});  // elements beyond the pads do not count
  ExpectOutput(pool({{"dilations", IntList({2})}, {"pads", IntList({2, 0})}}), {1, 1, 3}, {2, 4, 4});
}

// An element that several windows share is assigned once.
TEST(PoolOps, UnpoolingAssigns) {
  ExpectOutput(
      {"MaxUnpool", {Floats({1, 1, 2}, {5, 5}), Ints({1, 1, 2}, {1, 1})}, {{"kernel_shape", IntList({2})}}, 11},
      {1, 1, 3}, {0, 5, 0});
}

TEST(PoolOps, OthersAndGlobalOnes) {
  const Constant x = Floats({1, 1, 2, 2}, {3, -4, 0, 5});
  ExpectOutput({"LpPool", {x}, {{"kernel_shape", IntList({1, 2})}}}, {1, 1, 2, 1}, {5, 5});
  ExpectOutput({"LpPool", {x}, {{"kernel_shape", IntList({1, 2})}, {"p", Int(1)}}}, {1, 1, 2, 1}, {7, 5});
  ExpectOutput({"GlobalAveragePool", {x}}, {1, 1, 1, 1}, {1});
  ExpectOutput({"GlobalMaxPool", {x}}, {1, 1, 1, 1}, {5});
  ExpectOutput({"GlobalLpPool", {x}}, {1, 1, 1, 1}, {std::sqrt(50)});
  ExpectOutput({"MaxUnpool",
                {Floats({1, 1, 2}, {7, 8}), Ints({1, 1, 2}, {1, 2})},
                {{"kernel_shape", IntList({2})}, {"strides", IntList({2})}}},
               {1, 1, 4}, {0, 7, 8, 0});
}

}  // namespace
}  // namespace hone::graph
