// SPDX-License-Identifier: Apache-2.0
// The expected outputs are those of ONNX Runtime 1.30 (CPU), except where a test computes them.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/decompose/literals.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DecomposeQuantized, AddRoundsHalvesOfTheSumToEven) {
  const OpCase test_case = {
      "QLinearAdd",
      {U8({8}, {0, 1, 2, 3, 100, 200, 250, 255}), Floats({}, {0.5}), U8({}, {1}), U8({8}, {0, 0, 1, 1, 7, 200, 250, 0}),
       Floats({}, {0.5}), U8({}, {0}), Floats({}, {1}), U8({}, {3})},
      {}};
  ExpectDecomposed(test_case, {8}, {2, 3, 4, 4, 56, 202, 252, 130}, {.constants = {1, 2, 4, 5, 6, 7}});
}

TEST(DecomposeQuantized, AddOfSignedIntegersBroadcasts) {
  const OpCase test_case = {
      "QLinearAdd",
      {I8({2, 3}, {-128, -7, 0, 5, 90, 127}), Floats({}, {0.1}), I8({}, {2}), I8({3}, {-3, 4, 100}), Floats({}, {0.25}),
       I8({}, {-1}), Floats({}, {0.30000001}), I8({}, {5})},
      {}};
  ExpectDecomposed(test_case, {2, 3}, {-40, 6, 88, 4, 38, 127});
}

TEST(DecomposeQuantized, AddWithoutZeroPoints) {
  const OpCase test_case = {"QLinearAdd",
                            {U8({1, 2}, {3, 250}), Floats({}, {0.5}), U8({}, {0}), U8({3, 1}, {0, 9, 200}),
                             Floats({}, {0.125}), U8({}, {0}), Floats({}, {0.75}), U8({}, {0})},
                            {}};
  ExpectDecomposed(test_case, {3, 2}, {2, 167, 4, 168, 35, 200});
}

TEST(DecomposeQuantized, Mul) {
  const OpCase test_case = {
      "QLinearMul",
      {U8({2, 4}, {0, 1, 9, 100, 128, 200, 254, 255}), Floats({}, {0.5}), U8({}, {128}), U8({4}, {3, 130, 77, 255}),
       Floats({}, {0.25}), U8({}, {120}), Floats({}, {4}), U8({}, {131})},
      {}};
  ExpectDecomposed(test_case, {2, 4}, {255, 91, 255, 13, 131, 154, 0, 255}, {.constants = {1, 2, 4, 5, 6, 7}});
}

TEST(DecomposeQuantized, Sigmoid) {
  const OpCase test_case = {"QLinearSigmoid",
                            {U8({6}, {0, 100, 127, 128, 140, 255}), Floats({}, {0.0625}), U8({}, {128}),
                             Floats({}, {0.00390625}), U8({}, {0})},
                            {}};
  ExpectDecomposed(test_case, {6}, {0, 38, 124, 128, 174, 255}, {.constants = {1, 2, 3, 4}});
}

TEST(DecomposeQuantized, LeakyRelu) {
  const OpCase test_case = {
      "QLinearLeakyRelu",
      {I8({6}, {-128, -50, -1, 0, 10, 127}), Floats({}, {0.1}), I8({}, {-2}), Floats({}, {0.050000001}), I8({}, {3})},
      {{"alpha", 0.1}}};
  ExpectDecomposed(test_case, {6}, {-22, -7, 5, 7, 27, 127}, {.constants = {1, 2, 3, 4}});
}

TEST(DecomposeQuantized, SoftmaxOfOneAxis) {
  const OpCase test_case = {"QLinearSoftmax",
                            {U8({2, 3}, {10, 20, 30, 200, 199, 150}), Floats({}, {0.1}), U8({}, {100}),
                             Floats({}, {0.00390625}), U8({}, {0})},
                            {{"opset", Int(13)}, {"axis", Int(0)}}};
  ExpectDecomposed(test_case, {2, 3}, {0, 0, 0, 255, 255, 255}, {.constants = {1, 2, 3, 4}});
}

TEST(DecomposeQuantized, SoftmaxOfAllLaterAxes) {
  const OpCase test_case = {"QLinearSoftmax",
                            {U8({2, 2, 2}, {10, 20, 30, 40, 200, 199, 150, 201}), Floats({}, {0.1}), U8({}, {100}),
                             Floats({}, {0.0099999998}), U8({}, {5})},
                            {{"opset", Int(11)}, {"axis", Int(1)}}};
  ExpectDecomposed(test_case, {2, 2, 2}, {8, 14, 29, 69, 38, 35, 5, 42}, {.constants = {1, 2, 3, 4}});
}

TEST(DecomposeQuantized, ConcatRequantizesEachPart) {
  const OpCase test_case = {"QLinearConcat",
                            {Floats({}, {0.5}), U8({}, {10}), U8({1, 3}, {1, 2, 255}), Floats({}, {0.5}), U8({}, {10}),
                             U8({1, 2}, {0, 200}), Floats({}, {0.25}), U8({}, {3})},
                            {{"axis", Int(1)}}};
  ExpectDecomposed(test_case, {1, 5}, {1, 2, 255, 8, 108}, {.constants = {0, 1, 3, 4, 6, 7}});
}

TEST(DecomposeQuantized, Where) {
  const OpCase test_case = {
      "QLinearWhere",
      {Bools({4}, {1, 0, 1, 0}), U8({4}, {1, 2, 3, 255}), Floats({}, {0.5}), U8({}, {10}), U8({4}, {50, 60, 70, 80}),
       Floats({}, {0.1}), U8({}, {3}), Floats({}, {0.25}), U8({}, {20})},
      {}};
  ExpectDecomposed(test_case, {4}, {2, 43, 6, 51}, {.constants = {2, 3, 5, 6, 7, 8}});
}

TEST(DecomposeQuantized, AveragePoolAddsTheZeroPointBeforeRounding) {
  const OpCase test_case = {"QLinearAveragePool",
                            {U8({1, 1, 3, 3}, {0, 1, 2, 3, 5, 8, 100, 200, 255}), Floats({}, {0.5}), U8({}, {1}),
                             Floats({}, {0.5}), U8({}, {3})},
                            {{"kernel_shape", IntList({2, 2})}}};
  ExpectDecomposed(test_case, {1, 1, 2, 2}, {4, 6, 79, 119}, {.constants = {1, 2, 3, 4}});
}

TEST(DecomposeQuantized, AveragePoolWithTheChannelsLast) {
  const OpCase test_case = {
      "QLinearAveragePool",
      {I8({1, 2, 2, 2}, {0, 1, 2, 3, -5, 8, 100, -120}), Floats({}, {0.25}), I8({}, {1}), Floats({}, {0.5}),
       I8({}, {-3})},
      {{"kernel_shape", IntList({2, 2})}, {"pads", IntList({1, 0, 0, 0})}, {"channels_last", Int(1)}}};
  ExpectDecomposed(test_case, {1, 2, 1, 2}, {-3, -2, 9, -17}, {.constants = {1, 2, 3, 4}});
}

TEST(DecomposeQuantized, GlobalAveragePool) {
  const OpCase test_case = {"QLinearGlobalAveragePool",
                            {U8({1, 2, 2, 2}, {0, 1, 2, 3, 250, 251, 255, 240}), Floats({}, {0.5}), U8({}, {2}),
                             Floats({}, {0.25}), U8({}, {10})},
                            {}};
  ExpectDecomposed(test_case, {1, 2, 1, 1}, {9, 255}, {.constants = {1, 2, 3, 4}});
}

TEST(DecomposeQuantized, GlobalAveragePoolWithTheChannelsLast) {
  const OpCase test_case = {"QLinearGlobalAveragePool",
                            {U8({1, 2, 2, 2}, {0, 1, 2, 3, 250, 251, 255, 240}), Floats({}, {0.5}), U8({}, {2}),
                             Floats({}, {1}), U8({}, {10})},
                            {{"channels_last", Int(1)}}};
  ExpectDecomposed(test_case, {1, 1, 1, 2}, {72, 71}, {.constants = {1, 2, 3, 4}});
}

TEST(DecomposeQuantized, QuantizeAlongAnAxis) {
  const OpCase test_case = {
      "QuantizeLinear",
      {Floats({2, 3}, {-1, 0.30000001, 2.5, 3.5, 100, 7}), Floats({2}, {0.5, 1}), I8({2}, {1, -2})},
      {{"axis", Int(0)}}};
  ExpectDecomposed(test_case, {2, 3}, {-1, 2, 6, 2, 98, 5});
}

TEST(DecomposeQuantized, DequantizeAlongAnAxis) {
  const OpCase test_case = {"DequantizeLinear",
                            {I8({2, 3}, {-1, 3, 2, 3, 100, 7}), Floats({3}, {0.5, 1, 2}), I8({3}, {1, -2, 0})},
                            {{"axis", Int(1)}}};
  ExpectDecomposed(test_case, {2, 3}, {-1, 5, 4, 1, 102, 14});
}

TEST(DecomposeQuantized, QuantizeTo16Bits) {
  const OpCase test_case = {
      "QuantizeLinear", {Floats({4}, {-1, 0.30000001, 2.5, 1000000}), Floats({}, {0.001}), U16({}, {1000})}, {}};
  ExpectDecomposed(test_case, {4}, {0, 1300, 3500, 65535});
}

// ONNX Runtime has no kernel for the operators of the next three tests; the outputs are computed by hand.
TEST(DecomposeQuantized, ReduceMean) {
  const OpCase test_case = {"QLinearReduceMean",
                            {U8({2, 2}, {1, 2, 3, 6}), Floats({}, {0.5}), U8({}, {1}), Floats({}, {0.25}), U8({}, {3})},
                            {{"axes", IntList({1})}, {"keepdims", Int(0)}}};
  ExpectDecomposed(test_case, {2}, {4, 10});
}

TEST(DecomposeQuantized, MulInteger) {
  ExpectDecomposed({"MulInteger", {U8({2}, {1, 200}), U8({}, {100}), U8({2}, {3, 5}), U8({}, {4})}}, {2}, {99, 100});
  ExpectDecomposed({"MulInteger", {U8({2}, {255, 2}), Absent(), U8({2}, {255, 5})}}, {2}, {65025, 10});
}

TEST(DecomposeQuantized, ReduceSumInteger) {
  ExpectDecomposed({"ReduceSumInteger", {U8({2, 2}, {255, 255, 1, 2})}, {{"axes", IntList({1})}}}, {2, 1}, {510, 3});
  ExpectDecomposed({"ReduceSumInteger", {I8({2, 2}, {-128, -128, 1, 2})}, {{"keepdims", Int(0)}}}, {}, {-253});
}

TEST(DecomposeQuantized, ConcatNeedsGroupsOfThreeInputs) {
  const OpCase test_case = {
      "QLinearConcat",
      {Floats({}, {0.5}), U8({}, {1}), U8({1}, {1}), Floats({}, {0.5}), U8({}, {1}), U8({1}, {2})},
      {{"axis", Int(0)}}};
  EXPECT_THAT(RunDecomposed(test_case).status().message(), HasSubstr("groups of three"));
}

TEST(DecomposeQuantized, PartsOfEqualQuantizationAreNotTouched) {
  const OpCase test_case = {"QLinearConcat",
                            {Floats({}, {0.5}), U8({}, {1}), U8({1}, {1}), Floats({}, {0.5}), U8({}, {1}), U8({1}, {2}),
                             Floats({}, {0.25}), U8({}, {1})},
                            {{"axis", Int(0)}}};
  EXPECT_THAT(DecomposedOps(test_case, {.constants = {0, 1, 3, 4, 6, 7}}),
              ElementsAre("DequantizeLinear", "QuantizeLinear", "Concat"));
}

}  // namespace
}  // namespace hone::graph
