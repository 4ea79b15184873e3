// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Attributes = std::map<std::string, Attribute>;

Constant Bytes(Shape shape, uint64_t seed) {
  const Constant random = RandomTensor(shape, seed);
  std::vector<double> numbers;
  for (double number : Numbers(random)) numbers.push_back(std::floor((number + 1) * 128));
  return Tensor(ir::DType::kUInt8, std::move(shape), numbers);
}

// x [2, 40] times 40 x 3 weights in blocks of 32: the second block is not full.
struct Packed {
  int64_t bits;
  Constant zeros = Absent(), groups = Absent(), bias = Absent();

  OpCase Case() const {
    return {
        .op = "MatMulNBits",
        .inputs = {RandomTensor({2, 40}, 1), Bytes({3, 2, 4 * bits}, 2), RandomTensor({3, 2}, 3), zeros, groups, bias},
        .attributes = {{"K", Int(40)}, {"N", Int(3)}, {"bits", Int(bits)}, {"block_size", Int(32)}}};
  }
};

TEST(DecomposeOwnOperators, MatMulNBits) {
  for (const int64_t bits : {2, 4, 8}) {
    const std::string name = "nbits_" + std::to_string(bits);
    ExpectAsOnnxRuntime(name, Packed{bits}.Case());
    ExpectAsOnnxRuntime(name + "_bias", Packed{.bits = bits, .bias = RandomTensor({3}, 5)}.Case());
    ExpectAsOnnxRuntime(name + "_zeros", Packed{.bits = bits, .zeros = Bytes({3, bits == 8 ? 2 : 1}, 4)}.Case());
  }
  ExpectAsOnnxRuntime("nbits_float_zeros", Packed{.bits = 4, .zeros = RandomTensor({3, 2}, 4)}.Case());
}

// The weight in column k belongs to block k / 32, unless input 4 says otherwise.
TEST(DecomposeOwnOperators, BlocksOfRows) {
  std::vector<double> own(40, 0), swapped(40, 1);
  for (size_t k = 32; k < 40; ++k) own[k] = 1, swapped[k] = 0;
  const auto plain = RunDecomposed(Packed{4}.Case());
  ASSERT_TRUE(plain.ok()) << plain.status();
  ExpectDecomposed(Packed{.bits = 4, .groups = Int32s({40}, own)}.Case(), {2, 3}, Numbers((*plain)[0]));
  OpCase other = Packed{4}.Case();
  const std::vector<double> scales = Numbers(other.inputs[2]);
  other.inputs[2] = Floats({3, 2}, {scales[1], scales[0], scales[3], scales[2], scales[5], scales[4]});
  other.inputs[4] = Int32s({40}, swapped);
  ExpectDecomposed(other, {2, 3}, Numbers((*plain)[0]));
}

TEST(DecomposeOwnOperators, MatMulNBitsOfMoreDimensionsAndHalfPrecision) {
  OpCase batched = Packed{4}.Case();
  const auto plain = RunDecomposed(batched);
  ASSERT_TRUE(plain.ok()) << plain.status();
  batched.inputs[0].type.shape = {1, 2, 40};
  ExpectDecomposed(batched, {1, 2, 3}, Numbers((*plain)[0]));
  OpCase half = Packed{4}.Case();
  for (size_t i : {0, 2}) {
    const Constant& input = half.inputs[i];
    half.inputs[i] = Tensor(ir::DType::kFloat16, ir::Values(input.type.shape), Numbers(input));
  }
  ExpectDecomposed(half, {2, 3}, Numbers((*plain)[0]), {}, 0, 2e-2);
}

TEST(DecomposeOwnOperators, BadWeightsAreNamed) {
  OpCase three = Packed{4}.Case();
  three.attributes["bits"] = Int(3);
  EXPECT_THAT(RunDecomposed(three).status().message(), HasSubstr("bits is 3"));
  OpCase wrong = Packed{4}.Case();
  wrong.attributes["N"] = Int(4);
  EXPECT_THAT(RunDecomposed(wrong).status().message(), HasSubstr("u8[4,2,16]"));
}

// The weights stay packed: one kernel, and no constant of 32 x 64 floats.
TEST(DecomposeOwnOperators, WeightsStayPacked) {
  GraphBuilder b;
  b.Input("x", {2, 64}).Floats("scales", {32, 2}, RandomFloats(64, 1));
  b.Initializer(Tensor<uint8_t>("w", kUInt8, {32, 2, 16}, std::vector<uint8_t>(1024, 0x5c)));
  b.Node("MatMulNBits", {"x", "w", "scales"}, {"m"}, {Attr("K", 64), Attr("N", 32), Attr("block_size", 32)},
         "com.microsoft");
  b.Node("Relu", {"m"}, {"y"}).Output("y");
  const Plan plan = PlanOf(ExpectPassesKeepMeaning(b.Model()));
  EXPECT_THAT(CallLabels(plan), ElementsAre("matmul_nbits"));
  for (const PlanTensor& tensor : plan.tensors) {
    EXPECT_LE(tensor.data == nullptr ? 0 : tensor.data->size(), 1024u);
  }
}

TEST(DecomposeOwnOperators, ProductsWithCommonInput) {
  const Constant x = RandomTensor({2, 32}, 1), skip = RandomTensor({2, 32}, 2), scale = RandomTensor({32}, 3);
  const Constant weights = Bytes({3, 1, 16}, 4), scales = RandomTensor({3, 1}, 5), bias = RandomTensor({3}, 6);
  const Attributes sizes = {{"K", Int(32)}, {"N", Int(3)}, {"bits", Int(4)}, {"block_size", Int(32)}};
  const auto product = [&](const Constant& of, const Constant& with) {
    const auto results = RunDecomposed({"MatMulNBits", {of, weights, scales, Absent(), Absent(), with}, sizes});
    EXPECT_TRUE(results.ok()) << results.status();
    return Numbers((*results)[0]);
  };
  const auto normalized = RunDecomposed(
      {.op = "SkipSimplifiedLayerNormalization", .inputs = {x, skip, scale}, .outputs = 4}, {.unused = {1, 2}});
  ASSERT_TRUE(normalized.ok()) << normalized.status();
  const std::vector<double> gate = product((*normalized)[0], bias), factor = product((*normalized)[0], Absent());
  std::vector<double> expected;
  for (size_t i = 0; i < gate.size(); ++i) expected.push_back(gate[i] / (1 + std::exp(-gate[i])) * factor[i]);
  Attributes mlp = sizes;
  mlp["activation"] = std::string("silu");
  const OpCase gated{.op = "MatMulNBitsMlp",
                     .inputs = {x, skip, scale, weights, scales, bias, weights, scales, Absent()},
                     .attributes = mlp,
                     .outputs = 2};
  ExpectDecomposed(gated, {2, 3}, expected);
  ExpectDecomposed(gated, {2, 32}, Numbers((*normalized)[3]), {}, 1);
  const OpCase qkv{.op = "MatMulNBitsQkv",
                   .inputs = {x, skip, scale, weights, scales, bias, weights, scales, Absent(), weights, scales, bias},
                   .attributes = {{"K", Int(32)}, {"Nq", Int(3)}, {"Nkv", Int(3)}, {"block_size", Int(32)}},
                   .outputs = 4};
  for (size_t output : {0, 1, 2}) ExpectDecomposed(qkv, {2, 3}, output == 1 ? factor : gate, {}, output);
  ExpectDecomposed(qkv, {2, 32}, Numbers((*normalized)[3]), {}, 3);
}

// 5 rows of 32 numbers in blocks of 16.
TEST(DecomposeOwnOperators, GatherBlockQuantized) {
  const Constant indices = Ints({2, 2}, {4, 0, 3, 1}), scales = RandomTensor({5, 2}, 2);
  const Attributes four = {{"bits", Int(4)}, {"block_size", Int(16)}, {"quantize_axis", Int(1)}};
  Attributes eight = four;
  eight["bits"] = Int(8);
  ExpectAsOnnxRuntime("gather_block_4", {"GatherBlockQuantized", {Bytes({5, 16}, 1), indices, scales}, four});
  ExpectAsOnnxRuntime("gather_block_4_zeros",
                      {"GatherBlockQuantized", {Bytes({5, 16}, 1), indices, scales, Bytes({5, 1}, 3)}, four});
  ExpectAsOnnxRuntime("gather_block_8", {"GatherBlockQuantized", {Bytes({5, 32}, 1), indices, scales}, eight});
  ExpectAsOnnxRuntime("gather_block_8_zeros",
                      {"GatherBlockQuantized", {Bytes({5, 32}, 1), indices, scales, Bytes({5, 2}, 3)}, eight});
  Attributes columns = four;
  columns["gather_axis"] = Int(1);
  EXPECT_THAT(RunDecomposed({"GatherBlockQuantized", {Bytes({5, 16}, 1), indices, scales}, columns}).status().message(),
              HasSubstr("axis 0"));
}

TEST(DecomposeOwnOperators, LinearAttention) {
  const Constant q = RandomTensor({1, 3, 4}, 1), k = RandomTensor({1, 3, 4}, 2), v = RandomTensor({1, 3, 4}, 3);
  const Attributes heads = {{"q_num_heads", Int(2)}, {"kv_num_heads", Int(2)}};
  Attributes linear = heads;
  linear["update_rule"] = std::string("linear");
  ExpectAsOnnxRuntime("linear_attention",
                      {.op = "LinearAttention", .inputs = {q, k, v}, .attributes = linear, .outputs = 2});
  const Constant decay = RandomTensor({1, 3, 2}, 4), beta = RandomTensor({1, 3, 2}, 5);
  Attributes chunks = heads;
  chunks.insert({{"chunk_size", Int(2)}, {"scale", 0.3}});
  ExpectAsOnnxRuntime("linear_attention_gated_delta", {.op = "LinearAttention",
                                                       .inputs = {q, k, v, RandomTensor({1, 2, 2, 2}, 6), decay, beta},
                                                       .attributes = chunks,
                                                       .outputs = 2});
}

TEST(DecomposeOwnOperators, CausalConvWithState) {
  const Constant x = RandomTensor({1, 2, 4}, 1), weights = RandomTensor({2, 1, 3}, 2), bias = RandomTensor({2}, 3);
  ExpectAsOnnxRuntime("causal_conv",
                      {.op = "CausalConvWithState", .inputs = {x, weights, bias}, .attributes = {}, .outputs = 2});
  ExpectAsOnnxRuntime("causal_conv_past", {.op = "CausalConvWithState",
                                           .inputs = {x, weights, Absent(), RandomTensor({1, 2, 2}, 4)},
                                           .attributes = {{"activation", std::string("silu")}},
                                           .outputs = 2});
  // With dilation 2 the taps are at positions t - 4, t - 2 and t.
  const OpCase dilated{.op = "CausalConvWithState",
                       .inputs = {Floats({1, 1, 3}, {1, 2, 3}), Floats({1, 1, 3}, {100, 10, 1}), Absent(),
                                  Floats({1, 1, 4}, {4, 5, 6, 7})},
                       .attributes = {{"dilation", Int(2)}},
                       .outputs = 2};
  ExpectDecomposed(dilated, {1, 1, 3}, {461, 572, 613});
  ExpectDecomposed(dilated, {1, 1, 4}, {7, 1, 2, 3}, {}, 1);
}

TEST(DecomposeOwnOperators, LinearAttentionGate) {
  const OpCase gate{
      .op = "LinearAttentionGate",
      .inputs = {Floats({1, 1, 2}, {1, -2}), Floats({2}, {0.5, 1}), Floats({2}, {-1, -3}), Floats({1, 1, 2}, {0, 3})},
      .outputs = 2};
  ExpectDecomposed(gate, {1, 1, 2}, {-std::log1p(std::exp(1.5)), -3 * std::log1p(std::exp(-1))});
  ExpectDecomposed(gate, {1, 1, 2}, {0.5, 1 / (1 + std::exp(-3))}, {}, 1);
}

TEST(DecomposeOwnOperators, Inverse) {
  ExpectAsOnnxRuntime("inverse", {"Inverse", {RandomTensor({2, 3, 3}, 1)}}, {}, 1e-4);
  ExpectAsOnnxRuntime("inverse_row_exchange", {"Inverse", {Floats({2, 2}, {0, 2, 4, 1})}});
  ExpectAsOnnxRuntime("inverse_number", {"Inverse", {Floats({1, 1}, {4})}});
  ExpectAsOnnxRuntime("inverse_large", {"Inverse", {RandomTensor({6, 6}, 2)}}, {}, 1e-4);
  EXPECT_THAT(RunDecomposed({"Inverse", {RandomTensor({33, 33}, 1)}}).status().message(), HasSubstr("33 rows"));
}

TEST(DecomposeOwnOperators, CropAndResize) {
  const Constant x = RandomTensor({2, 1, 4, 5}, 1), batches = Int32s({3}, {1, 0, 1});
  const Constant regions = Floats({3, 4}, {0, 0, 1, 1, 0.2, 0.1, 0.9, 0.6, -0.2, 0.5, 0.7, 1.3});
  const DecomposeOptions size{.constants = {3}};
  ExpectAsOnnxRuntime("crop", {"CropAndResize", {x, regions, batches, Int32s({2}, {3, 2})}}, size);
  ExpectAsOnnxRuntime("crop_one", {"CropAndResize", {x, regions, batches, Int32s({2}, {1, 2})}}, size);
  ExpectAsOnnxRuntime("crop_nearest",
                      {"CropAndResize",
                       {x, regions, batches, Int32s({2}, {2, 4})},
                       {{"mode", std::string("nearest")}, {"extrapolation_value", 7.0}}},
                      size);
}

// --- Fourier transforms, which ONNX Runtime has on other devices only.

TEST(DecomposeSignal, Rfft) {
  const Constant x = RandomTensor({2, 6}, 1);
  const std::vector<double> numbers = Numbers(x);
  std::vector<double> expected;
  for (size_t row = 0; row < 2; ++row) {
    for (size_t bin = 0; bin < 4; ++bin) {
      double real = 0, imaginary = 0;
      for (size_t k = 0; k < 6; ++k) {
        const double angle = -2 * M_PI * static_cast<double>(bin * k) / 6;
        real += numbers[row * 6 + k] * std::cos(angle);
        imaginary += numbers[row * 6 + k] * std::sin(angle);
      }
      expected.insert(expected.end(), {real, imaginary});
    }
  }
  const OpCase forward{"Rfft", {x}, {{"signal_ndim", Int(1)}, {"onesided", Int(1)}, {"normalized", Int(0)}}};
  ExpectDecomposed(forward, {2, 4, 2}, expected);
  ExpectDecomposed({"Irfft", {Floats({2, 4, 2}, expected)}, {{"signal_ndim", Int(1)}}}, {2, 6}, numbers);
  EXPECT_THAT(RunDecomposed({"Rfft", {x}, {{"normalized", Int(1)}}}).status().message(), HasSubstr("normalized"));
}

TEST(DecomposeSignal, TwoDimensionsThereAndBack) {
  const Constant x = RandomTensor({2, 3, 4}, 1);
  const std::vector<double> numbers = Numbers(x);
  const Attributes two = {{"signal_ndim", Int(2)}};
  const auto spectrum = RunDecomposed({"Rfft", {x}, two});
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  ASSERT_EQ((*spectrum)[0].type.shape, (Shape{2, 3, 3, 2}));
  double real = 0, imaginary = 0;  // bin (1, 1) of the first image
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      const double angle = -2 * M_PI * (static_cast<double>(row) / 3 + static_cast<double>(column) / 4);
      real += numbers[row * 4 + column] * std::cos(angle);
      imaginary += numbers[row * 4 + column] * std::sin(angle);
    }
  }
  EXPECT_NEAR(Numbers((*spectrum)[0])[(1 * 3 + 1) * 2], real, 1e-5);
  EXPECT_NEAR(Numbers((*spectrum)[0])[(1 * 3 + 1) * 2 + 1], imaginary, 1e-5);
  ExpectDecomposed({"Irfft", {(*spectrum)[0]}, two}, {2, 3, 4}, numbers);
}

TEST(DecomposeSignal, ComplexProducts) {
  const Constant a = Floats({1, 2}, {1, 2}), b = Floats({1, 2}, {3, 4});
  ExpectDecomposed({"ComplexMul", {a, b}}, {1, 2}, {-5, 10});
  ExpectDecomposed({"ComplexMulConj", {a, b}}, {1, 2}, {11, 2});
}

}  // namespace
}  // namespace hone::graph
