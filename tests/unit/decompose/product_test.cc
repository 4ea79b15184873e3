// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;

TEST(DecomposeProduct, FusedMatMul) {
  const Constant a = RandomTensor({2, 3, 4}, 1), b = RandomTensor({2, 4, 2}, 2), scaled = RandomTensor({2, 2, 4}, 3);
  ExpectAsOnnxRuntime("fused_matmul", {"FusedMatMul", {a, b}, {{"alpha", 0.5}}});
  ExpectAsOnnxRuntime("fused_matmul_b", {"FusedMatMul", {a, scaled}, {{"transB", Int(1)}}});
  const Constant columns = RandomTensor({2, 4, 3}, 4);
  ExpectAsOnnxRuntime("fused_matmul_a", {"FusedMatMul", {columns, b}, {{"transA", Int(1)}}});
  ExpectAsOnnxRuntime("transpose_matmul", {"TransposeMatMul", {columns, b}, {{"transA", Int(1)}, {"alpha", 2.0}}});
  ExpectAsOnnxRuntime("fused_matmul_vector", {"FusedMatMul", {a, RandomTensor({4}, 5)}, {{"transB", Int(1)}}});
}

TEST(DecomposeProduct, FusedMatMulWithTransposedBatches) {
  const Constant a = RandomTensor({3, 2, 4}, 1), b = RandomTensor({4, 2, 2}, 2);  // [row, batch, column]
  ExpectAsOnnxRuntime("fused_matmul_batches",
                      {"FusedMatMul", {a, b}, {{"transBatchA", Int(1)}, {"transBatchB", Int(1)}}});
  const Constant turned = RandomTensor({4, 2, 3}, 3);
  ExpectAsOnnxRuntime(
      "fused_matmul_batch_and_rows",
      {"FusedMatMul", {turned, RandomTensor({2, 4, 2}, 4)}, {{"transBatchA", Int(1)}, {"transA", Int(1)}}});
  const Constant deep = RandomTensor({3, 2, 2, 4}, 5);
  ExpectAsOnnxRuntime("fused_matmul_two_batches",
                      {"FusedMatMul", {deep, RandomTensor({2, 2, 4, 1}, 6)}, {{"transBatchA", Int(1)}}});
}

TEST(DecomposeProduct, FusedGemm) {
  const Constant a = RandomTensor({2, 3}, 1), b = RandomTensor({3, 4}, 2), c = RandomTensor({4}, 3);
  const auto activated = [](const char* name) {
    return std::map<std::string, Attribute>{{"activation", std::string(name)}};
  };
  ExpectAsOnnxRuntime("fused_gemm_relu", {"FusedGemm", {a, b, c}, activated("Relu")});
  ExpectAsOnnxRuntime("fused_gemm_tanh", {"FusedGemm", {a, b}, activated("Tanh")});
  std::map<std::string, Attribute> leaky = activated("LeakyRelu");
  leaky.insert({{"activation_alpha", 0.3}, {"alpha", 0.5}, {"beta", 2.0}, {"transB", Int(1)}});
  ExpectAsOnnxRuntime("fused_gemm_leaky", {"FusedGemm", {a, RandomTensor({4, 3}, 2), c}, leaky});
  std::map<std::string, Attribute> hard = activated("HardSigmoid");
  hard.insert({{"activation_alpha", 0.4}, {"activation_beta", 0.3}, {"transA", Int(1)}});
  ExpectAsOnnxRuntime("fused_gemm_hard", {"FusedGemm", {RandomTensor({3, 2}, 1), b, c}, hard});
  EXPECT_THAT(RunDecomposed({"FusedGemm", {a, b}, activated("Other")}).status().message(),
              HasSubstr("activation 'Other' is not supported"));
}

TEST(DecomposeProduct, FusedMatMulActivation) {
  const Constant a = Floats({1, 2}, {1, -2}), b = Floats({2, 2}, {1, 3, 2, 1});  // products -3 and 1
  ExpectDecomposed({"FusedMatMulActivation", {a, b}, {{"activation", std::string("Relu")}, {"alpha", 2.0}}}, {1, 2},
                   {0, 2});
}

// ONNX Runtime has no CPU kernel for it.
TEST(DecomposeProduct, GemmFastGelu) {
  const Constant a = Floats({1, 2}, {1, -2}), b = Floats({2, 2}, {1, 3, 2, 1}), bias = Floats({2}, {3, 1});
  const double gelu_of_1 = 0.841191990608, gelu_of_2 = 1.954597694088, gelu_of_minus_3 = -0.003637392006;
  ExpectDecomposed({"GemmFastGelu", {a, b, bias}}, {1, 2}, {0, gelu_of_2});
  ExpectDecomposed({"GemmFastGelu", {a, b}}, {1, 2}, {gelu_of_minus_3, gelu_of_1});
}

}  // namespace
}  // namespace hone::graph
