// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

TEST(ReduceOps, AllTen) {
  const Constant x = Floats({2, 2}, {1, -2, 3, 4});
  auto reduce = [&](const std::string& op) {
    return OpCase{op, {x}, {{"axes", IntList({1})}, {"keepdims", Int(0)}}, 11};
  };
  ExpectNumbers(reduce("ReduceSum"), {-1, 7});
  ExpectNumbers(reduce("ReduceMean"), {-0.5, 3.5});
  ExpectNumbers(reduce("ReduceMax"), {1, 4});
  ExpectNumbers(reduce("ReduceMin"), {-2, 3});
  ExpectNumbers(reduce("ReduceProd"), {-2, 12});
  ExpectNumbers(reduce("ReduceL1"), {3, 7});
  ExpectNumbers(reduce("ReduceL2"), {std::sqrt(5), 5});
  ExpectNumbers(reduce("ReduceSumSquare"), {5, 25});
  ExpectNumbers(reduce("ReduceLogSumExp"), {std::log(std::exp(1) + std::exp(-2)), std::log(std::exp(3) + std::exp(4))});
  ExpectNumbers({"ReduceLogSum", {Floats({2}, {1, 2})}}, {std::log(3)});
}

TEST(ReduceOps, AxesInAllForms) {
  const Constant x = Counting({2, 3});
  ExpectOutput({"ReduceSum", {x}}, {1, 1}, {15});
  ExpectOutput({"ReduceSum", {x, Ints({1}, {-2})}}, {1, 3}, {3, 5, 7});
  ExpectOutput({"ReduceSum", {x, Ints({0}, {})}, {{"noop_with_empty_axes", Int(1)}}}, {2, 3}, {0, 1, 2, 3, 4, 5});
  ExpectOutput({"ReduceMax", {x, Ints({1}, {0})}, {{"keepdims", Int(0)}}, 18}, {3}, {3, 4, 5});
}

TEST(ReduceOps, ExtremesOfNothingAndOfEverything) {
  ExpectOutput({"ReduceMax", {Floats({0}, {})}}, {1}, {-kInf});
  ExpectOutput({"ReduceSum", {Floats({2, 0}, {}), Ints({1}, {1})}}, {2, 1}, {0, 0});
  ExpectOutput({"ReduceMax", {Bools({2}, {0, 1})}, {}, 20}, {1}, {1});
  ExpectOutput({"ReduceLogSumExp", {Floats({2}, {-kInf, -kInf})}}, {1}, {-kInf});
  ExpectOutput({"ReduceLogSumExp", {Floats({2}, {1000, 1000})}}, {1}, {1000 + std::log(2)});
}

TEST(ReduceOps, HalvesAreSummedWide) {
  // In float16, 2048 + 1 is 2048, so adding one by one would stay at 2048.
  std::vector<double> numbers(65, 1);
  numbers[0] = 2048;
  ExpectOutput({"ReduceSum", {Tensor(DType::kFloat16, {65}, numbers)}}, {1}, {2112});
}

TEST(ReduceOps, PositionsOfExtremes) {
  const Constant x = Floats({2, 3}, {1, 3, 3, 5, 2, 5});
  ExpectOutput({"ArgMax", {x}, {{"axis", Int(1)}}}, {2, 1}, {1, 0});
  ExpectOutput({"ArgMax", {x}, {{"axis", Int(1)}, {"select_last_index", Int(1)}, {"keepdims", Int(0)}}}, {2}, {2, 2});
  ExpectOutput({"ArgMin", {x}, {{"axis", Int(-1)}, {"keepdims", Int(0)}}}, {2}, {0, 1});
}

TEST(ReduceOps, NanIsAnExtreme) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kFloat64}) {
    const Constant x = Tensor(dtype, {2, 4}, {1, kNan, 3, kNan, kInf, 2, -kInf, 5});
    ExpectOutput({"ArgMax", {x}, {{"axis", Int(1)}}}, {2, 1}, {1, 0});
    ExpectOutput({"ArgMin", {x}, {{"axis", Int(1)}}}, {2, 1}, {1, 2});
    ExpectOutput({"ArgMin", {x}, {{"axis", Int(1)}, {"select_last_index", Int(1)}}}, {2, 1}, {3, 2});
  }
}

TEST(ReduceOps, CumulativeSums) {
  const Constant x = Floats({3}, {1, 2, 4}), axis = Ints({}, {0});
  ExpectNumbers({"CumSum", {x, axis}}, {1, 3, 7});
  ExpectNumbers({"CumSum", {x, axis}, {{"exclusive", Int(1)}}}, {0, 1, 3});
  ExpectNumbers({"CumSum", {x, axis}, {{"reverse", Int(1)}}}, {7, 6, 4});
  ExpectNumbers({"CumSum", {x, axis}, {{"reverse", Int(1)}, {"exclusive", Int(1)}}}, {6, 4, 0});
}

TEST(SortOps, TopKKeepsTheOrderOfEquals) {
  const Constant x = Floats({5}, {3, 1, 3, 2, 5});
  ExpectOutput({"TopK", {x, Ints({1}, {3})}, {}, 11, 2}, {3}, {5, 3, 3}, 0);
  ExpectOutput({"TopK", {x, Ints({1}, {3})}, {}, 11, 2}, {3}, {4, 0, 2}, 1);
  ExpectOutput({"TopK", {x, Ints({1}, {2})}, {{"largest", Int(0)}}, 11, 2}, {2}, {1, 3}, 1);
  ExpectOutput({"TopK", {x}, {{"k", Int(1)}}, 9, 2}, {1}, {5}, 0);
}

TEST(SortOps, TopKOrdersAllFloats) {
  const Constant k = Ints({1}, {6});
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    const Constant x = Tensor(dtype, {6}, {-0.0, -kInf, 0.0, -2, kInf, -1});
    ExpectOutput({"TopK", {x, k}, {}, 11, 2}, {6}, {kInf, 0, 0, -1, -2, -kInf}, 0);
    ExpectOutput({"TopK", {x, k}, {}, 11, 2}, {6}, {4, 0, 2, 5, 3, 1}, 1);
    ExpectOutput({"TopK", {x, k}, {{"largest", Int(0)}}, 11, 2}, {6}, {1, 3, 5, 0, 2, 4}, 1);
  }
}

TEST(SortOps, TopKTakesNanForTheLargest) {
  const Constant k = Ints({1}, {6});
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kFloat64}) {
    const Constant x = Tensor(dtype, {6}, {3, kNan, kInf, 5, kNan, 3});
    ExpectOutput({"TopK", {x, k}, {}, 11, 2}, {6}, {kNan, kNan, kInf, 5, 3, 3}, 0);
    ExpectOutput({"TopK", {x, k}, {}, 11, 2}, {6}, {1, 4, 2, 3, 0, 5}, 1);
    ExpectOutput({"TopK", {x, k}, {{"largest", Int(0)}}, 11, 2}, {6}, {0, 5, 3, 2, 1, 4}, 1);
  }
}

TEST(SoftmaxOps, OneAxisSinceOpset13) {
  const Constant x = Floats({1, 2, 2}, {0, std::log(3), 0, 0});
  ExpectOutput({"Softmax", {x}}, {1, 2, 2}, {0.25, 0.75, 0.5, 0.5});
  ExpectOutput({"Softmax", {x}, {}, 11}, {1, 2, 2}, {1.0 / 6, 0.5, 1.0 / 6, 1.0 / 6});  // columns from axis 1 on
  ExpectOutput({"LogSoftmax", {x}}, {1, 2, 2}, {std::log(0.25), std::log(0.75), std::log(0.5), std::log(0.5)});
  ExpectOutput({"Hardmax", {x}}, {1, 2, 2}, {0, 1, 1, 0});
  ExpectOutput({"Softmax", {Floats({1, 2}, {1000, 1000})}}, {1, 2}, {0.5, 0.5});
}

TEST(LossOps, NegativeLogLikelihood) {
  const Constant x = Floats({2, 3}, {-1, -2, -3, -4, -5, -6}), target = Ints({2}, {1, 2});
  auto loss = [&](const std::string& reduction, std::vector<Constant> inputs) {
    return OpCase{"NegativeLogLikelihoodLoss", std::move(inputs), {{"reduction", reduction}}};
  };
  ExpectOutput(loss("none", {x, target}), {2}, {2, 6});
  ExpectOutput(loss("sum", {x, target}), {}, {8});
  ExpectOutput(loss("mean", {x, target}), {}, {4});
  ExpectOutput(loss("mean", {x, target, Floats({3}, {1, 3, 1})}), {}, {3});
  OpCase ignoring = loss("mean", {x, target});
  ignoring.attributes["ignore_index"] = Int(2);
  ExpectOutput(ignoring, {}, {2});
}

TEST(LossOps, CrossEntropyGivesTheLogarithmsToo) {
  const OpCase loss{"SoftmaxCrossEntropyLoss", {Floats({1, 2}, {0, std::log(3)}), Ints({1}, {1})}, {}, 13, 2};
  ExpectOutput(loss, {}, {-std::log(0.75)}, 0);
  ExpectOutput(loss, {1, 2}, {std::log(0.25), std::log(0.75)}, 1);
}

TEST(NormOps, Batch) {
  const Constant x = Floats({1, 2, 1, 2}, {1, 3, 5, 5});
  const Constant scale = Floats({2}, {2, 1}), bias = Floats({2}, {0, 1}), mean = Floats({2}, {2, 4});
  const Constant variance = Floats({2}, {4, 1});
  ExpectOutput({"BatchNormalization", {x, scale, bias, mean, variance}, {{"epsilon", 0.0}}}, {1, 2, 1, 2},
               {-1, 1, 2, 2});
  const Constant one = Floats({1}, {1}), two = Floats({1}, {2}), four = Floats({1}, {4});
  ExpectOutput({"BatchNormalization", {Floats({3}, {1, 2, 4}), two, one, two, four}, {{"epsilon", 0.0}}}, {3},
               {0, 1, 3});
  const OpCase column{"BatchNormalization",
                      {Floats({2}, {1, 3}), two, one, two, four},
                      {{"training_mode", Int(1)}, {"momentum", 0.5}, {"epsilon", 0.0}},
                      15,
                      3};
  ExpectOutput(column, {2}, {-1, 3}, 0);
  ExpectOutput(column, {1}, {2}, 1);
  const OpCase training{
      "BatchNormalization", {x, scale, bias, mean, variance}, {{"training_mode", Int(1)}, {"momentum", 0.5}}, 15, 3};
  ExpectOutput(training, {1, 2, 1, 2}, {-2, 2, 1, 1}, 0);
  ExpectOutput(training, {2}, {2, 4.5}, 1);
  ExpectOutput(training, {2}, {2.5, 0.5}, 2);
}

TEST(NormOps, OverTheirDimensions) {
  const Constant x = Floats({1, 2, 2}, {1, 3, 4, 8}), one = Floats({2}, {1, 1}), zero = Floats({2}, {0, 0});
  ExpectOutput({"LayerNormalization", {x, Floats({2}, {1, 2}), Floats({2}, {0, 1})}}, {1, 2, 2}, {-1, 3, -1, 3});
  ExpectOutput({"LayerNormalization", {x, one}, {}, 17, 3}, {1, 2, 1}, {2, 6}, 1);
  ExpectOutput({"LayerNormalization", {x, one}, {{"epsilon", 0.0}}, 17, 3}, {1, 2, 1}, {1, 0.5}, 2);
  ExpectOutput({"InstanceNormalization", {x, one, zero}}, {1, 2, 2}, {-1, 1, -1, 1});
  const double four = std::sqrt(6.5);  // the deviation of 1, 3, 4, 8
  ExpectOutput(
      {"GroupNormalization", {x, Floats({1}, {1}), Floats({1}, {0})}, {{"num_groups", Int(1)}, {"epsilon", 0.0}}, 18},
      {1, 2, 2}, {-3 / four, -1 / four, 0, 4 / four});
  ExpectOutput({"GroupNormalization", {x, Floats({2}, {1, 2}), zero}, {{"num_groups", Int(1)}, {"epsilon", 0.0}}, 21},
               {1, 2, 2}, {-3 / four, -1 / four, 0, 8 / four});
  ExpectOutput({"MeanVarianceNormalization", {x}, {{"axes", IntList({2})}}}, {1, 2, 2}, {-1, 1, -1, 1});
  ExpectOutput({"LpNormalization", {Floats({2, 2}, {3, 4, 0, 0})}}, {2, 2}, {0.6, 0.8, 0, 0});
  ExpectOutput({"LpNormalization", {Floats({2}, {3, -1})}, {{"p", Int(1)}}}, {2}, {0.75, -0.25});
  ExpectOutput({"RMSNormalization", {Floats({1, 2}, {1, 7}), one}, {{"epsilon", 0.0}}, 23}, {1, 2}, {0.2, 1.4});
}

TEST(NormOps, TypesThatDifferFromTheData) {
  const auto type = [](const OpCase& test_case, size_t output) {
    const auto result = RunCase(test_case);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? (*result)[output].type.dtype : DType::kBool;
  };
  const Constant x = Tensor(DType::kFloat64, {1, 2}, {1, 7}), one = Tensor(DType::kFloat64, {2}, {1, 1});
  OpCase layer{"LayerNormalization", {x, one}, {}, 17, 3};
  EXPECT_EQ(type(layer, 0), DType::kFloat64);
  EXPECT_EQ(type(layer, 1), DType::kFloat32);
  EXPECT_EQ(type(layer, 2), DType::kFloat32);
  ExpectOutput(layer, {1, 1}, {4}, 1);
  layer.attributes["stash_type"] = Int(16);
  EXPECT_EQ(type(layer, 1), DType::kBFloat16);
  EXPECT_EQ(type({"RMSNormalization", {Floats({1, 2}, {1, 7}), one}, {}, 23}, 0), DType::kFloat64);
}

TEST(NormOps, AcrossChannels) {
  ExpectOutput(
      {"LRN", {Floats({1, 3, 1}, {1, 2, 3})}, {{"size", Int(3)}, {"alpha", 3.0}, {"beta", 1.0}, {"bias", 1.0}}},
      {1, 3, 1}, {1.0 / 6, 2.0 / 15, 3.0 / 14});
}

}  // namespace
}  // namespace hone::graph
