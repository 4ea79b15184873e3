// SPDX-License-Identifier: Apache-2.0
// The expected outputs are those of ONNX Runtime 1.30 (CPU), except where a test computes them.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/decompose/literals.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;

TEST(DecomposeConvolution, FusedConvWithRelu) {
  const OpCase test_case = {"FusedConv",
                            {Floats({1, 1, 2, 3}, {1, -2, 3, 0.5, 4, -1}),
                             Floats({2, 1, 2, 2}, {1, -1, 0.5, 0.25, -0.5, 1, 2, -1}), Floats({2}, {0.1, -0.2})},
                            {{"activation", std::string("Relu")}, {"kernel_shape", IntList({2, 2})}}};
  ExpectDecomposed(test_case, {1, 2, 1, 2}, {4.3499999, 0, 0, 12.8});
}

TEST(DecomposeConvolution, FusedConvWithSigmoid) {
  const OpCase test_case = {"FusedConv",
                            {Floats({1, 1, 2, 3}, {1, -2, 3, 0.5, 4, -1}),
                             Floats({2, 1, 2, 2}, {1, -1, 0.5, 0.25, -0.5, 1, 2, -1}), Floats({2}, {0.1, -0.2})},
                            {{"activation", std::string("Sigmoid")}, {"kernel_shape", IntList({2, 2})}}};
  ExpectDecomposed(test_case, {1, 2, 1, 2}, {0.98725772, 0.041091263, 0.0033348501, 0.99999726});
}

TEST(DecomposeConvolution, FusedConvWithTanh) {
  const OpCase test_case = {"FusedConv",
                            {Floats({1, 1, 2, 3}, {1, -2, 3, 0.5, 4, -1}),
                             Floats({2, 1, 2, 2}, {1, -1, 0.5, 0.25, -0.5, 1, 2, -1}), Floats({2}, {0.1, -0.2})},
                            {{"activation", std::string("Tanh")}, {"kernel_shape", IntList({2, 2})}}};
  ExpectDecomposed(test_case, {1, 2, 1, 2}, {0.99966693, -0.99633408, -0.99997771, 1});
}

TEST(DecomposeConvolution, FusedConvWithLeakyRelu) {
  const OpCase test_case = {"FusedConv",
                            {Floats({1, 1, 2, 3}, {1, -2, 3, 0.5, 4, -1}),
                             Floats({2, 1, 2, 2}, {1, -1, 0.5, 0.25, -0.5, 1, 2, -1}), Floats({2}, {0.1, -0.2})},
                            {{"activation", std::string("LeakyRelu")},
                             {"activation_params", Reals({0.1})},
                             {"kernel_shape", IntList({2, 2})}}};
  ExpectDecomposed(test_case, {1, 2, 1, 2}, {4.3499999, -0.31500003, -0.56999999, 12.8});
}

TEST(DecomposeConvolution, FusedConvWithHardSigmoid) {
  const OpCase test_case = {"FusedConv",
                            {Floats({1, 1, 2, 3}, {1, -2, 3, 0.5, 4, -1}),
                             Floats({2, 1, 2, 2}, {1, -1, 0.5, 0.25, -0.5, 1, 2, -1}), Floats({2}, {0.1, -0.2})},
                            {{"activation", std::string("HardSigmoid")},
                             {"activation_params", Reals({0.25, 0.40000001})},
                             {"kernel_shape", IntList({2, 2})}}};
  ExpectDecomposed(test_case, {1, 2, 1, 2}, {1, 0, 0, 1});
}

TEST(DecomposeConvolution, FusedConvWithClip) {
  const OpCase test_case = {
      "FusedConv",
      {Floats({1, 1, 2, 3}, {1, -2, 3, 0.5, 4, -1}), Floats({2, 1, 2, 2}, {1, -1, 0.5, 0.25, -0.5, 1, 2, -1}),
       Floats({2}, {0.1, -0.2})},
      {{"activation", std::string("Clip")}, {"activation_params", Reals({-1, 2})}, {"kernel_shape", IntList({2, 2})}}};
  ExpectDecomposed(test_case, {1, 2, 1, 2}, {2, -1, -1, 2});
}

TEST(DecomposeConvolution, ResidualIsAddedBeforeTheActivation) {
  const OpCase test_case = {
      "FusedConv",
      {Floats({1, 1, 2, 3}, {1, -2, 3, 0.5, 4, -1}), Floats({2, 1, 2, 2}, {1, -1, 0.5, 0.25, -0.5, 1, 2, -1}),
       Floats({2}, {0.1, -0.2}), Floats({1, 2, 1, 2}, {3, -3, 1, 2})},
      {{"activation", std::string("Relu")}, {"kernel_shape", IntList({2, 2})}}};
  ExpectDecomposed(test_case, {1, 2, 1, 2}, {7.3499999, 0, 0, 14.8});
}

TEST(DecomposeConvolution, QLinearConvWithTheChannelsLast) {
  const OpCase test_case = {
      "QLinearConv",
      {U8({1, 2, 2, 2}, {0, 9, 255, 3, 128, 64, 200, 7}), Floats({}, {0.050000001}), U8({}, {100}),
       U8({1, 2, 1, 2}, {130, 20, 3, 255}), Floats({}, {0.02}), U8({}, {128}), Floats({}, {0.5}), U8({}, {60})},
      {{"channels_last", Int(1)}}};
  ExpectDecomposed(test_case, {1, 2, 1, 1}, {24, 24}, {.constants = {1, 2, 3, 4, 5, 6, 7}});
}

TEST(DecomposeConvolution, MaxPoolWithTheChannelsLast) {
  const OpCase test_case = {"NhwcMaxPool",
                            {U8({1, 2, 3, 2}, {0, 9, 255, 3, 128, 64, 200, 7, 1, 99, 5, 6})},
                            {{"kernel_shape", IntList({2, 2})}}};
  ExpectDecomposed(test_case, {1, 1, 2, 2}, {255, 99, 255, 99});
}

// The weights have the channels at dimension 1 also where the data has them last. Computed by hand.
TEST(DecomposeConvolution, NhwcConv) {
  const OpCase test_case = {"NhwcConv",
                            {Floats({1, 1, 2, 2}, {1, 2, 3, 4}), Floats({1, 2, 1, 1}, {10, 1}), Floats({1}, {0.5})}};
  ExpectDecomposed(test_case, {1, 1, 2, 1}, {12.5, 34.5});
  OpCase fused = test_case;
  fused.op = "NhwcFusedConv";
  fused.inputs.push_back(Floats({1, 1, 2, 1}, {-100, 1}));
  fused.attributes["activation"] = std::string("Relu");
  ExpectDecomposed(fused, {1, 1, 2, 1}, {0, 35.5});
}

TEST(DecomposeConvolution, OtherActivationsAreErrors) {
  const OpCase test_case = {
      "FusedConv", {Floats({1, 1, 1}, {1}), Floats({1, 1, 1}, {1})}, {{"activation", std::string("Wave")}}};
  EXPECT_THAT(RunDecomposed(test_case).status().message(), HasSubstr("activation 'Wave' is not supported"));
}

TEST(DecomposeConvolution, BlockedChannelsAreRefused) {
  const OpCase test_case = {"ReorderInput", {Floats({1, 1, 1, 1}, {1})}, {}, 17, 1, "com.microsoft.nchwc"};
  EXPECT_THAT(RunDecomposed(test_case).status().message(), HasSubstr("size of the blocks is not in the file"));
}

}  // namespace
}  // namespace hone::graph
