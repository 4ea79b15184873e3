// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

TEST(MatMulOps, AllRanks) {
  const Constant a = Counting({2, 2}), b = Floats({2, 2}, {1, 2, 3, 4}), v = Floats({2}, {1, 10});
  ExpectOutput({"MatMul", {a, b}}, {2, 2}, {3, 4, 11, 16});
  ExpectOutput({"MatMul", {a, v}}, {2}, {10, 32});
  ExpectOutput({"MatMul", {v, a}}, {2}, {20, 31});
  ExpectOutput({"MatMul", {v, v}}, {}, {101});
  ExpectOutput({"MatMul", {Counting({2, 1, 1, 2}), Floats({1, 2, 2, 1}, {1, 2, 3, 4})}}, {2, 2, 1, 1}, {2, 4, 8, 18});
  ExpectOutput({"MatMul", {Floats({2, 0}, {}), Floats({0, 1}, {})}}, {2, 1}, {0, 0});
}

TEST(MatMulOps, Gemm) {
  const Constant a = Floats({1, 2}, {1, 2}), b = Floats({2, 2}, {1, 2, 3, 4}), c = Floats({2}, {10, 20});
  ExpectOutput({"Gemm", {a, b}}, {1, 2}, {7, 10});
  ExpectOutput({"Gemm", {a, b, c}, {{"alpha", 2.0}, {"beta", 0.5}}}, {1, 2}, {19, 30});
  ExpectOutput({"Gemm", {a, b}, {{"transB", Int(1)}}}, {1, 2}, {5, 11});
  ExpectOutput({"Gemm", {Floats({2, 1}, {1, 2}), b}, {{"transA", Int(1)}}}, {1, 2}, {7, 10});
}

TEST(MatMulOps, Quantized) {
  const DType u8 = DType::kUInt8, i8 = DType::kInt8;
  const Constant a = Tensor(u8, {2, 2}, {1, 2, 3, 4}), b = Tensor(i8, {2, 1}, {1, -1});
  ExpectOutput({"MatMulInteger", {a, b}}, {2, 1}, {-1, -1});
  ExpectOutput({"MatMulInteger", {a, b, Tensor(u8, {2}, {0, 3}), Tensor(i8, {1}, {1})}}, {2, 1}, {-4, -2});
  const Constant scale = Floats({}, {0.5}), one = Floats({}, {1});
  ExpectOutput(
      {"QLinearMatMul", {a, scale, Tensor(u8, {}, {0}), b, one, Tensor(i8, {}, {-2}), one, Tensor(u8, {}, {1})}},
      {2, 1}, {3, 7});  // 2.5 to even, 6.5 to even, plus 1
}

TEST(EinsumOps, Equations) {
  const Constant a = Counting({2, 3}), b = Counting({3, 2});
  auto einsum = [](const std::string& equation, std::vector<Constant> inputs) {
    return OpCase{"Einsum", std::move(inputs), {{"equation", equation}}};
  };
  ExpectOutput(einsum("ij,jk->ik", {a, b}), {2, 2}, {10, 13, 28, 40});
  ExpectOutput(einsum("ij, jk", {a, b}), {2, 2}, {10, 13, 28, 40});
  ExpectOutput(einsum("ij->ji", {a}), {3, 2}, {0, 3, 1, 4, 2, 5});
  ExpectOutput(einsum("ij->", {a}), {}, {15});
  ExpectOutput(einsum("...ii->...i", {Counting({1, 2, 2})}), {1, 2}, {0, 3});
  ExpectOutput(einsum("...j,j->...", {a, Floats({3}, {1, 1, 1})}), {2}, {3, 12});
  ExpectOutput(einsum("ij,jk,k->i", {a, b, Floats({2}, {1, 1})}), {2}, {23, 68});
}

TEST(EinsumOps, Determinants) {
  ExpectOutput({"Det", {Floats({2, 2}, {0, 2, 3, 4})}}, {}, {-6});  // needs a row exchange
  ExpectOutput({"Det", {Floats({2, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 4})}}, {2}, {-2, 0});
  ExpectOutput({"Det", {Floats({3, 3}, {2, 0, 1, 1, 3, 2, 1, 1, 4})}}, {}, {18});
}

TEST(QuantizeOps, QuantizeAndBack) {
  const DType u8 = DType::kUInt8, i8 = DType::kInt8;
  const Constant x = Floats({4}, {-1000, 1, 3, 1000}), two = Floats({}, {2});
  ExpectNumbers({"QuantizeLinear", {x, two, Tensor(u8, {}, {128})}}, {0, 128, 130, 255});  // 0.5 and 1.5 to even
  ExpectNumbers({"QuantizeLinear", {x, two, Tensor(i8, {}, {0})}}, {-128, 0, 2, 127});
  ExpectNumbers({"DequantizeLinear", {Tensor(u8, {2}, {0, 130}), two, Tensor(u8, {}, {128})}}, {-256, 4});
  const DType i32 = DType::kInt32;
  ExpectNumbers({"DequantizeLinear", {Tensor(i32, {2}, {0, 130}), two, Tensor(i32, {}, {128})}}, {-256, 4});
  ExpectOutput({"DequantizeLinear", {Tensor(i8, {1, 2}, {1, 2}), Floats({2}, {2, 10})}}, {1, 2}, {2, 20});
  ExpectOutput(
      {"DequantizeLinear", {Tensor(i8, {1, 4}, {1, 2, 3, 4}), Floats({1, 2}, {1, 10})}, {{"block_size", Int(2)}}, 21},
      {1, 4}, {1, 2, 30, 40});
  ExpectOutput({"QuantizeLinear", {Floats({2, 1}, {4, 4}), Floats({2}, {1, 2})}, {{"axis", Int(0)}}}, {2, 1}, {4, 2});
  ExpectOutput({"QuantizeLinear",
                {Floats({2, 2}, {4, 4, 4, 4}), Floats({2, 1}, {1, 2})},
                {{"axis", Int(1)}, {"block_size", Int(std::numeric_limits<int64_t>::max())}},
                21},
               {2, 2}, {4, 4, 2, 2});
}

TEST(QuantizeOps, TypesOfOpset23) {
  const Constant x = Tensor(DType::kInt8, {2}, {1, 3}), scale = Tensor(DType::kFloat16, {}, {0.5});
  const OpCase wide{"DequantizeLinear", {x, scale}, {{"output_dtype", Int(1)}}, 23};
  ExpectNumbers(wide, {0.5, 1.5});
  EXPECT_EQ(RunCase(wide).value()[0].type.dtype, DType::kFloat32);
  ExpectNumbers({"QuantizeLinear", {Floats({2}, {1, 3}), Floats({}, {2})}, {{"precision", Int(1)}}, 23}, {0, 2});
}

TEST(QuantizeOps, Dynamic) {
  const OpCase quantize{"DynamicQuantizeLinear", {Floats({3}, {0, 51, 255})}, {}, 11, 3};
  ExpectOutput(quantize, {3}, {0, 51, 255}, 0);
  ExpectOutput(quantize, {}, {1}, 1);
  ExpectOutput(quantize, {}, {0}, 2);
  ExpectNumbers({"DynamicQuantizeLinear", {Floats({2}, {0, 0})}, {}, 11, 3}, {0, 0});
}

TEST(RotaryOps, TurnPairsOfEachHead) {
  const Constant heads = Floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), ids = Ints({1, 2}, {0, 1});
  const Constant cosine = Floats({2, 2}, {1, 1, 0, 1}), sine = Floats({2, 2}, {0, 0, 1, 0});
  ExpectOutput({"RotaryEmbedding", {heads, cosine, sine, ids}, {}, 23}, {1, 1, 2, 4}, {1, 2, 3, 4, -7, 6, 5, 8});
  ExpectOutput({"RotaryEmbedding", {heads, cosine, sine, ids}, {{"interleaved", Int(1)}}, 23}, {1, 1, 2, 4},
               {1, 2, 3, 4, -6, 5, 7, 8});
  const Constant one_cosine = Floats({2, 1}, {1, 0}), one_sine = Floats({2, 1}, {0, 1});
  ExpectOutput({"RotaryEmbedding", {heads, one_cosine, one_sine, ids}, {{"rotary_embedding_dim", Int(2)}}, 23},
               {1, 1, 2, 4}, {1, 2, 3, 4, -6, 5, 7, 8});
  const Constant flat = Floats({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Constant cosines = Floats({1, 2, 1}, {1, 0}), sines = Floats({1, 2, 1}, {0, 1});
  ExpectOutput({"RotaryEmbedding", {flat, cosines, sines}, {{"num_heads", Int(2)}}, 23}, {1, 2, 4},
               {1, 2, 3, 4, -6, 5, -8, 7});
}

TEST(SignalOps, Transforms) {
  const Constant x = Floats({1, 4, 1}, {1, 2, 3, 4});
  ExpectOutput({"DFT", {x}}, {1, 4, 2}, {10, 0, -2, 2, -2, 0, -2, -2});
  ExpectOutput({"DFT", {x}, {{"onesided", Int(1)}}}, {1, 3, 2}, {10, 0, -2, 2, -2, 0});
  ExpectOutput({"DFT", {Floats({1, 4, 2}, {10, 0, -2, 2, -2, 0, -2, -2})}, {{"inverse", Int(1)}}}, {1, 4, 2},
               {1, 0, 2, 0, 3, 0, 4, 0});
  ExpectOutput({"DFT", {x, Ints({}, {2})}}, {1, 2, 2}, {3, 0, -1, 0});
  ExpectOutput({"STFT", {x, Ints({}, {1}), Floats({2}, {1, 2})}}, {1, 3, 2, 2},
               {5, 0, -3, 0, 8, 0, -4, 0, 11, 0, -5, 0});
}

}  // namespace
}  // namespace hone::graph
