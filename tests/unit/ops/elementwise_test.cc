// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

TEST(UnaryOps, ComputeTheirFunction) {
  const Constant x = Floats({4}, {-2, -0.5, 0.5, 2.5});
  ExpectNumbers({"Abs", {x}}, {2, 0.5, 0.5, 2.5});
  ExpectNumbers({"Neg", {x}}, {2, 0.5, -0.5, -2.5});
  ExpectNumbers({"Ceil", {x}}, {-2, 0, 1, 3});
  ExpectNumbers({"Floor", {x}}, {-2, -1, 0, 2});
  ExpectNumbers({"Round", {x}}, {-2, 0, 0, 2});  // half to even
  ExpectNumbers({"Sign", {x}}, {-1, -1, 1, 1});
  ExpectNumbers({"Exp", {x}}, {std::exp(-2), std::exp(-0.5), std::exp(0.5), std::exp(2.5)});
  ExpectNumbers({"Erf", {x}}, {std::erf(-2), std::erf(-0.5), std::erf(0.5), std::erf(2.5)});
  ExpectNumbers({"Reciprocal", {x}}, {-0.5, -2, 2, 0.4});
  ExpectNumbers({"Sqrt", {Floats({2}, {4, -1})}}, {2, kNan});
}

TEST(UnaryOps, TestForSpecialNumbers) {
  const Constant x = Floats({4}, {1, kNan, kInf, -kInf});
  ExpectNumbers({"IsNaN", {x}}, {0, 1, 0, 0});
  ExpectNumbers({"IsInf", {x}}, {0, 0, 1, 1});
  ExpectNumbers({"IsInf", {x}, {{"detect_negative", Int(0)}}}, {0, 0, 1, 0});
  ExpectNumbers({"IsInf", {x}, {{"detect_positive", Int(0)}}}, {0, 0, 0, 1});
}

TEST(UnaryOps, TakeEveryTypeThatOnnxGivesThem) {
  for (DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kFloat16, DType::kBFloat16,
                      DType::kFloat64}) {
    ExpectNumbers({"Abs", {Tensor(dtype, {2}, {-3, 2})}}, {3, 2});
  }
  for (DType dtype : {DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64}) {
    ExpectNumbers({"Abs", {Tensor(dtype, {2}, {3, 2})}}, {3, 2});
    ExpectNumbers({"Sign", {Tensor(dtype, {2}, {0, 2})}}, {0, 1});
    ExpectNumbers({"Relu", {Tensor(dtype, {2}, {0, 2})}}, {0, 2});
  }
  ExpectNumbers({"Erf", {Tensor(DType::kInt8, {4}, {-6, -1, 0, 6})}}, {-1, 0, 0, 1});
  ExpectNumbers({"Not", {Bools({2}, {0, 1})}}, {1, 0});
  ExpectNumbers({"BitwiseNot", {Tensor(DType::kUInt8, {2}, {0, 5})}, {}, 18}, {255, 250});
}

TEST(UnaryOps, RoundHalvesWhenTheyAreStored) {
  // 1 / 3 in float16 is 0.333251953125.
  ExpectNumbers({"Reciprocal", {Tensor(DType::kFloat16, {1}, {3})}}, {0.333251953125});
}

TEST(Activations, ComputeTheirFunction) {
  const Constant x = Floats({3}, {-1, 0.25, 3});
  const double e = std::exp(-1);
  ExpectNumbers({"Relu", {x}}, {0, 0.25, 3});
  ExpectNumbers({"LeakyRelu", {x}, {{"alpha", 0.1}}}, {-0.1, 0.25, 3});
  ExpectNumbers({"Elu", {x}, {{"alpha", 2.0}}}, {2 * (e - 1), 0.25, 3});
  ExpectNumbers({"Celu", {x}, {{"alpha", 2.0}}}, {2 * (std::exp(-0.5) - 1), 0.25, 3});
  ExpectNumbers({"Selu", {x}, {{"alpha", 2.0}, {"gamma", 3.0}}}, {6 * (e - 1), 0.75, 9});
  ExpectNumbers({"HardSigmoid", {x}, {{"alpha", 0.5}, {"beta", 0.25}}}, {0, 0.375, 1});
  ExpectNumbers({"HardSwish", {x}}, {-1.0 / 3, 0.25 * (0.25 / 6 + 0.5), 3});
  ExpectNumbers({"Softplus", {Floats({2}, {0, 1000})}}, {std::log(2), 1000});
  ExpectNumbers({"Softsign", {x}}, {-0.5, 0.2, 0.75});
  ExpectNumbers({"ThresholdedRelu", {x}}, {0, 0, 3});
  ExpectNumbers({"Shrink", {x}, {{"bias", 0.5}}}, {-0.5, 0, 2.5});
  ExpectNumbers({"PRelu", {x, Floats({1}, {0.5})}}, {-0.5, 0.25, 3});
  ExpectNumbers({"Mish", {Floats({1}, {1})}, {}, 18}, {std::tanh(std::log1p(std::exp(1)))});
}

// These integers are too large for f32 to tell apart.
TEST(Activations, ShrinkKeepsLargeIntegers) {
  const auto shrunk = RunCase({"Shrink", {Tensor(DType::kInt32, {3}, {-16777219, 0, 16777217})}, {{"bias", 2.0}}});
  ASSERT_TRUE(shrunk.ok()) << shrunk.status();
  EXPECT_EQ(Numbers((*shrunk)[0]), (std::vector<double>{-16777217, 0, 16777215}));
}

TEST(Activations, GeluHasTwoForms) {
  const Constant x = Floats({2}, {-1, 2});
  auto exact = [](double v) { return v * 0.5 * (1 + std::erf(v / std::sqrt(2))); };
  ExpectNumbers({"Gelu", {x}, {}, 20}, {exact(-1), exact(2)});
  ExpectNumbers({"Gelu", {x}, {}, 1, 1, "hone"}, {exact(-1), exact(2)});
  auto rough = [](double v) { return v * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); };
  ExpectNumbers({"Gelu", {x}, {{"approximate", std::string("tanh")}}, 20}, {rough(-1), rough(2)});
  ExpectNumbers({"Silu", {x}, {}, 1, 1, "hone"}, {-1 / (1 + std::exp(1)), 2 / (1 + std::exp(-2))});
}

TEST(BinaryOps, Broadcast) {
  const Constant a = Counting({2, 3});
  ExpectOutput({"Add", {a, Floats({3}, {10, 20, 30})}}, {2, 3}, {10, 21, 32, 13, 24, 35});
  ExpectOutput({"Mul", {a, Floats({2, 1}, {1, -1})}}, {2, 3}, {0, 1, 2, -3, -4, -5});
  ExpectOutput({"Sub", {Floats({}, {1}), a}}, {2, 3}, {1, 0, -1, -2, -3, -4});
  ExpectOutput({"Add", {Floats({0, 3}, {}), Floats({3}, {1, 2, 3})}}, {0, 3}, {});
}

TEST(BinaryOps, IntegersDivideAndShift) {
  const DType i32 = DType::kInt32;
  ExpectNumbers({"Div", {Tensor(i32, {3}, {-7, 7, 1}), Tensor(i32, {3}, {2, -2, 0})}}, {-3, -3, 0});
  ExpectNumbers({"Mod", {Tensor(i32, {2}, {-7, 7}), Tensor(i32, {2}, {3, -3})}}, {2, -2});
  ExpectNumbers({"Mod", {Tensor(i32, {2}, {-7, 7}), Tensor(i32, {2}, {3, -3})}, {{"fmod", Int(1)}}}, {-1, 1});
  ExpectNumbers({"Mod", {Floats({2}, {-7.5, 7}), Floats({2}, {2, 3})}, {{"fmod", Int(1)}}}, {-1.5, 1});
  const Constant one = Tensor(DType::kUInt8, {2}, {1, 200}), by = Tensor(DType::kUInt8, {2}, {3, 1});
  ExpectNumbers({"BitShift", {one, by}, {{"direction", std::string("LEFT")}}}, {8, 144});
  ExpectNumbers({"BitShift", {one, by}, {{"direction", std::string("RIGHT")}}}, {0, 100});
  ExpectNumbers({"BitwiseXor", {one, by}, {}, 18}, {2, 201});
}

TEST(BinaryOps, CompareAndCombine) {
  const Constant a = Floats({3}, {1, 2, kNan}), b = Floats({3}, {2, 2, 1});
  ExpectNumbers({"Less", {a, b}}, {1, 0, 0});
  ExpectNumbers({"GreaterOrEqual", {a, b}}, {0, 1, 0});
  ExpectNumbers({"Equal", {a, b}}, {0, 1, 0});
  ExpectNumbers({"Max", {a, b}}, {2, 2, kNan});  // NaN wins
  ExpectNumbers({"Xor", {Bools({2}, {1, 1}), Bools({2}, {0, 1})}}, {1, 0});
  ExpectNumbers({"Sum", {b, b, b}}, {6, 6, 3});
  ExpectNumbers({"Mean", {b, Floats({1}, {4})}}, {3, 3, 2.5});
}

TEST(BinaryOps, PowersOfKnownAndUnknownExponents) {
  const Constant x = Floats({2}, {3, 4});
  for (double exponent : {0.5, 1.0, 2.0, 3.0, 2.5, -1.0}) {
    ExpectNumbers({"Pow", {x, Floats({}, {exponent})}}, {std::pow(3, exponent), std::pow(4, exponent)});
  }
  ExpectNumbers({"Pow", {Ints({2}, {2, -3}), Ints({2}, {10, 3})}}, {1024, -27});
}

TEST(BinaryOps, PowersOfIntegersAreExactAndWrap) {
  const auto bits = [](const Constant& base, const Constant& exponent) {
    const absl::StatusOr<std::vector<Constant>> result = RunCase({"Pow", {base, exponent}});
    std::vector<int64_t> numbers(2);
    EXPECT_TRUE(result.ok() && result->front().data->size() == 16) << result.status();
    if (result.ok()) std::memcpy(numbers.data(), result->front().data->data(), 16);
    return numbers;
  };
  const int64_t power = 4052555153018976267;  // 3^39
  EXPECT_EQ(bits(Ints({2}, {3, -3}), Ints({2}, {39, 39})), (std::vector<int64_t>{power, -power}));
  EXPECT_EQ(bits(Ints({2}, {3, -3}), Ints({}, {39})), (std::vector<int64_t>{power, -power}));
  // Computed by squaring, modulo 2^64.
  EXPECT_EQ(bits(Ints({2}, {3, 2}), Ints({2}, {1099511627781, 64})), (std::vector<int64_t>{8295520562453676275, 0}));
}

TEST(BinaryOps, PowersOfIntegersOfEveryTypeAndSign) {
  for (DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}) {
    const Constant x = Tensor(dtype, {6}, {5, -1, -1, 1, 0, 2});
    ExpectNumbers({"Pow", {x, Tensor(DType::kInt32, {6}, {1, -3, -2, -7, -1, -1})}}, {5, -1, 1, 1, 0, 0});
    ExpectNumbers({"Pow", {x, Tensor(dtype, {}, {-3})}}, {0, -1, -1, 1, 0, 0});
    ExpectNumbers({"Pow", {x, Tensor(dtype, {6}, {0, 0, 6, 100, 0, 6})}}, {1, 1, 1, 1, 1, 64});
    ExpectNumbers({"Pow", {x, Tensor(DType::kUInt8, {}, {0})}}, {1, 1, 1, 1, 1, 1});
    ExpectNumbers({"Pow", {x, Tensor(DType::kUInt8, {}, {3})}}, {125, -1, -1, 1, 0, 8});
  }
  ExpectNumbers({"Pow", {Tensor(DType::kUInt8, {3}, {3, 255, 1}), Tensor(DType::kInt8, {3}, {5, -1, -1})}},
                {243, 0, 1});
  ExpectNumbers({"Pow", {Tensor(DType::kInt32, {2}, {2, -2}), Tensor(DType::kInt64, {}, {31})}},
                {-2147483648.0, -2147483648.0});
  ExpectNumbers({"Pow", {Tensor(DType::kInt32, {2}, {4, 9}), Floats({}, {0.5})}}, {2, 3});
}

TEST(BinaryOps, HalfPowersOfNegativeZeroAndInfinity) {
  const absl::StatusOr<std::vector<Constant>> roots =
      RunCase({"Pow", {Floats({4}, {-0.0, -kInf, kInf, -1}), Floats({}, {0.5})}});
  ASSERT_TRUE(roots.ok()) << roots.status();
  const std::vector<double> numbers = Numbers(roots->front());
  EXPECT_FALSE(std::signbit(numbers[0]));
  EXPECT_EQ(numbers[1], kInf);
  EXPECT_EQ(numbers[2], kInf);
  EXPECT_TRUE(std::isnan(numbers[3]));
}

TEST(CastOps, RoundOnceToHalfTypes) {
  const auto cast = [](const Constant& x, int64_t type) {
    const absl::StatusOr<std::vector<Constant>> result = RunCase({"Cast", {x}, {{"to", Int(type)}}});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? Numbers(result->front()) : std::vector<double>();
  };
  const auto doubles = [](std::vector<double> numbers) {
    return Tensor(DType::kFloat64, {static_cast<int64_t>(numbers.size())}, numbers);
  };
  const double bit = std::ldexp(1, -40);  // too small for f32
  // Numbers beside ties, among normal and among the smallest numbers.
  EXPECT_EQ(cast(doubles({1 + 0x1p-11 + bit, 1 + 0x1p-11, 1 + 0x3p-11 - bit, -1 - 0x1p-11 - bit}), 10),
            (std::vector<double>{1 + 0x1p-10, 1, 1 + 0x1p-10, -1 - 0x1p-10}));
  EXPECT_EQ(cast(doubles({0x1p-25 * (1 + bit), 0x1p-25, 65520 - bit * 1024, 65520, -kInf, 1e-300}), 10),
            (std::vector<double>{0x1p-24, 0, 65504, kInf, -kInf, 0}));
  EXPECT_EQ(cast(doubles({1 + 0x1p-8 + bit, 1 + 0x1p-8, 1e300}), 16), (std::vector<double>{1 + 0x1p-7, 1, kInf}));
  EXPECT_TRUE(std::isnan(cast(doubles({kNan}), 10)[0]));
  const double tie = 16777216 + 65536;  // a tie in bf16; the next integer is a tie in f32
  EXPECT_EQ(cast(Tensor(DType::kInt32, {2}, {tie, tie + 1}), 16), (std::vector<double>{16777216, 16777216 + 131072}));
  EXPECT_EQ(cast(Tensor(DType::kInt64, {2}, {2049, 70000}), 10), (std::vector<double>{2048, kInf}));
}

TEST(CastOps, ConvertAndSelect) {
  auto to = [](int64_t type) { return std::map<std::string, Attribute>{{"to", Int(type)}}; };
  const Constant x = Floats({3}, {-1.75, 0, 300});
  ExpectNumbers({"Cast", {x}, to(6)}, {-1, 0, 300});
  ExpectNumbers({"Cast", {x}, to(9)}, {1, 0, 1});
  ExpectNumbers({"Cast", {x}, to(10)}, {-1.75, 0, 300});
  ExpectNumbers({"Cast", {Tensor(DType::kFloat16, {1}, {0.1})}, to(11)}, {0.0999755859375});
  ExpectNumbers({"CastLike", {x, Ints({1}, {1})}}, {-1, 0, 300});
  ExpectNumbers({"Where", {Bools({3}, {1, 0, 1}), x, Floats({}, {9})}}, {-1.75, 9, 300});
}

TEST(CastOps, ClipTakesAttributesOrInputs) {
  const Constant x = Floats({3}, {-5, 0, 5});
  ExpectNumbers({"Clip", {x}, {{"min", -1.0}, {"max", 2.0}}, 6}, {-1, 0, 2});
  ExpectNumbers({"Clip", {x, Floats({}, {-1}), Floats({}, {2})}}, {-1, 0, 2});
  ExpectNumbers({"Clip", {x, Absent(), Floats({}, {2})}}, {-5, 0, 2});
  ExpectNumbers({"Clip", {x}}, {-5, 0, 5});
}

TEST(CastOps, DropoutPassesThrough) {
  const Constant x = Floats({2}, {1, 2});
  ExpectOutput({"Dropout", {x}, {}, 13, 2}, {2}, {1, 2}, 0);
  ExpectOutput({"Dropout", {x}, {}, 13, 2}, {2}, {1, 1}, 1);
  ExpectNumbers({"Dropout", {x, Floats({}, {0}), Bools({}, {1})}}, {1, 2});  // nothing is dropped at ratio 0
}

}  // namespace
}  // namespace hone::graph
