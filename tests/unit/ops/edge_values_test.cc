// SPDX-License-Identifier: Apache-2.0
// Operators at the edges of their number types: differences that cancel, sums that overflow, integers beyond 2^53.
//
// Expected numbers are computed here in f64 or 64-bit integers, by formulas that lose no digits. Start with
// ExpectClose and ExpectExact.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

constexpr int64_t kLowest64 = std::numeric_limits<int64_t>::min(), kHighest64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kExact = int64_t{1} << 53;  // f64 represents every integer up to here

std::vector<double> Outputs(const OpCase& test_case, size_t output = 0) {
  const absl::StatusOr<std::vector<Constant>> results = RunCase(test_case);
  EXPECT_TRUE(results.ok()) << test_case.op << ": " << results.status();
  return results.ok() && output < results->size() ? Numbers((*results)[output]) : std::vector<double>();
}

// Expects the first output to have these numbers, each to the relative error `tolerance`.
void ExpectClose(const OpCase& test_case, const std::vector<double>& numbers, double tolerance) {
  SCOPED_TRACE(test_case.op);
  const std::vector<double> got = Outputs(test_case);
  ASSERT_EQ(got.size(), numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k) {
    EXPECT_NEAR(got[k], numbers[k], tolerance * std::fabs(numbers[k])) << "element " << k;
  }
}

// Expects element by element function(x), in f32 to a few last bits, and in f64 nearly so.
void ExpectFunction(const std::string& op, const std::vector<double>& x, double (*function)(double),
                    const std::map<std::string, Attribute>& attributes = {}) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Constant data = Tensor(dtype, {static_cast<int64_t>(x.size())}, x);
    std::vector<double> expected;
    for (const double value : Numbers(data)) expected.push_back(function(value));
    ExpectClose({op, {data}, attributes, 20}, expected, dtype == DType::kFloat32 ? 1e-6 : 1e-14);
  }
}

// A tensor of 64-bit integers, of which all bits count.
Constant Longs(DType dtype, Shape shape, const std::vector<int64_t>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(int64_t));
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return {{dtype, std::move(shape)}, std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
}

// Expects the first output, of a 64-bit type, to have exactly these integers.
void ExpectExact(const OpCase& test_case, const std::vector<int64_t>& numbers) {
  SCOPED_TRACE(test_case.op);
  const absl::StatusOr<std::vector<Constant>> results = RunCase(test_case);
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<std::byte>& bytes = *results->front().data;
  ASSERT_EQ(bytes.size(), numbers.size() * sizeof(int64_t));
  std::vector<int64_t> got(numbers.size());
  if (!got.empty()) std::memcpy(got.data(), bytes.data(), bytes.size());
  EXPECT_EQ(got, numbers);
}

// --- Differences that cancel

double SoftplusExactly(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

const std::vector<double> kBothSides = {-80, -20, -5, -1, -0.3, -1e-3, -1e-7, 0, 1e-7, 0.5, 3, 30, 80};

TEST(EdgeValues, ActivationsKeepTheirDigitsWhereADifferenceCancels) {
  ExpectFunction("Softplus", kBothSides, SoftplusExactly);
  ExpectFunction("Mish", kBothSides, [](double x) { return x * std::tanh(SoftplusExactly(x)); });
  ExpectFunction("Elu", kBothSides, [](double x) { return x < 0 ? 2 * std::expm1(x) : x; }, {{"alpha", 2.0}});
  ExpectFunction("Celu", kBothSides, [](double x) { return x < 0 ? 0.5 * std::expm1(x / 0.5) : x; }, {{"alpha", 0.5}});
  ExpectFunction("Selu", kBothSides, [](double x) { return 2 * (x > 0 ? x : 0.5 * std::expm1(x)); },
                 {{"alpha", 0.5}, {"gamma", 2.0}});
}

TEST(EdgeValues, CeluTakesANegativeAlpha) {
  const std::vector<double> x = {-3, -1e-7, 1e-7, 2};
  std::vector<double> expected;
  for (const double value : x) {
    expected.push_back(std::max(value, 0.0) + std::min(-2 * std::expm1(value / -2), 0.0));
  }
  ExpectClose({"Celu", {Tensor(DType::kFloat64, {4}, x)}, {{"alpha", -2.0}}}, expected, 1e-14);
}

TEST(EdgeValues, ActivationsOfInfinitiesAndNan) {
  const Constant x = Floats({3}, {-kInf, kInf, kNan});
  ExpectNumbers({"Softplus", {x}}, {0, kInf, kNan});
  ExpectNumbers({"Mish", {x}, {}, 18}, {kNan, kInf, kNan});  // -infinity * 0
  ExpectNumbers({"Elu", {x}}, {-1, kInf, kNan});
  ExpectNumbers({"Selu", {x}, {{"alpha", 0.5}, {"gamma", 2.0}}}, {-1, kInf, kNan});
  ExpectNumbers({"Celu", {x}}, {-1, kInf, kNan});
  ExpectNumbers({"Gelu", {x}, {{"approximate", std::string("tanh")}}, 20}, {kNan, kInf, kNan});
}

TEST(EdgeValues, GeluByTanhKeepsItsDigitsBelowZero) {
  const std::map<std::string, Attribute> tanh = {{"approximate", std::string("tanh")}};
  const auto exact = [](double x) {
    const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    return x / (1 + std::exp(-2 * inner));
  };
  const std::vector<double> x = {-5, -3, -1, -1e-3, 2};
  std::vector<double> expected;
  for (const double value : x) expected.push_back(exact(value));
  ExpectClose({"Gelu", {Floats({5}, x)}, tanh, 20}, expected, 1e-5);
  ExpectClose({"Gelu", {Floats({5}, x)}, tanh, 1, 1, "hone"}, expected, 1e-5);
}

TEST(EdgeValues, LogarithmsOfSumsOfExponentials) {
  const double rest = std::log1p(std::exp(-20));
  const Constant x = Floats({1, 2}, {100, 80});
  ExpectClose({"LogSoftmax", {x}}, {-rest, -20 - rest}, 1e-6);
  ExpectClose({"LogSoftmax", {x}, {}, 11}, {-rest, -20 - rest}, 1e-6);
  ExpectClose({"LogSoftmax", {Floats({1, 3}, {1, 1, -19})}},
              {-std::log(2) - std::exp(-20) / 2, -std::log(2) - std::exp(-20) / 2, -20 - std::log(2)}, 1e-6);
  ExpectClose({"ReduceLogSumExp", {Floats({2}, {0, -20})}}, {rest}, 1e-6);
  ExpectClose({"ReduceLogSumExp", {Tensor(DType::kFloat64, {2}, {-40, 0})}}, {std::log1p(std::exp(-40))}, 1e-14);
  ExpectClose({"SoftmaxCrossEntropyLoss", {x, Ints({1}, {0})}, {}, 13}, {rest}, 1e-6);
  ExpectNumbers({"ReduceLogSumExp", {Floats({2}, {-kInf, -kInf})}, {{"keepdims", Int(1)}}}, {-kInf});
  ExpectNumbers({"ReduceLogSumExp", {Floats({2}, {kInf, 1})}}, {kInf});
  ExpectOutput({"LogSoftmax", {Floats({1, 2}, {kNan, 1})}}, {1, 2}, {kNan, kNan});
  ExpectOutput({"LogSoftmax", {Floats({1, 2}, {kInf, 1})}}, {1, 2}, {kNan, kNan});
  ExpectOutput({"LogSoftmax", {Floats({1, 2}, {-kInf, 1})}}, {1, 2}, {-kInf, 0});
}

TEST(EdgeValues, WindowsNearTheirEnds) {
  constexpr int64_t kSize = 100000;
  const double angle = 2 * M_PI / kSize, half = std::sin(angle / 2);
  for (const std::string op : {"HannWindow", "BlackmanWindow"}) {
    const std::vector<double> window = Outputs({op, {Ints({}, {kSize})}});
    ASSERT_EQ(window.size(), static_cast<size_t>(kSize));
    const double hann = half * half, sine = std::sin(angle);
    const double expected = op == "HannWindow" ? hann : hann - 0.16 * sine * sine;
    EXPECT_EQ(window[0], 0) << op;
    EXPECT_NEAR(window[1], expected, 1e-5 * expected) << op;
    EXPECT_NEAR(window[kSize - 1], expected, 1e-5 * expected) << op;
  }
}

// --- Normalizations of data far from 0

struct Normalized {
  Constant data;                // [1, 2, 64], rounded to f32
  std::vector<double> result;   // per channel: (data - mean) / deviation
  std::vector<double> grouped;  // over all
};

Normalized FarFromZero(double mean, double deviation, bool outlier) {
  std::vector<double> numbers;
  uint32_t seed = 1;
  for (int k = 0; k < 128; ++k) {
    seed = seed * 1664525 + 1013904223;
    numbers.push_back(mean + deviation * std::sqrt(12.0) * (seed / 4294967296.0 - 0.5));
  }
  for (const size_t k : {0, 32, 64, 96}) {
    if (outlier) numbers[k] = 0;
  }
  Normalized far{Floats({1, 2, 64}, numbers), {}, {}};
  const std::vector<double> x = Numbers(far.data);
  const auto normalize = [&](size_t first, size_t count, std::vector<double>& result) {
    double sum = 0, squares = 0;
    for (size_t k = first; k < first + count; ++k) sum += (x[k] - mean) / static_cast<double>(count);
    for (size_t k = first; k < first + count; ++k) {
      squares += std::pow(x[k] - mean - sum, 2) / static_cast<double>(count);
    }
    for (size_t k = first; k < first + count; ++k) result.push_back((x[k] - mean - sum) / std::sqrt(squares));
  };
  normalize(0, 64, far.result);
  normalize(64, 64, far.result);
  normalize(0, 128, far.grouped);
  return far;
}

void ExpectNormalized(const OpCase& test_case, const std::vector<double>& expected) {
  SCOPED_TRACE(test_case.op);
  const std::vector<double> got = Outputs(test_case);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_NEAR(got[k], expected[k], 1e-4 * std::max(1.0, std::fabs(expected[k]))) << "element " << k;
  }
}

TEST(EdgeValues, NormalizationsOfDataFarFromZero) {
  const std::map<std::string, Attribute> exact = {{"epsilon", 0.0}};
  const Constant row_ones = Floats({64}, std::vector<double>(64, 1)), ones = Floats({2}, {1, 1});
  const Constant row_zeros = Floats({64}, std::vector<double>(64, 0)), zeros = Floats({2}, {0, 0});
  for (const double mean : {1e4, -1e5, 1e3}) {
    const double deviation = std::fabs(mean) == 1e4 ? 0.1 : std::fabs(mean) / 1e6;
    const Normalized far = FarFromZero(mean, deviation, false);
    ExpectNormalized({"LayerNormalization", {far.data, row_ones, row_zeros}, exact}, far.result);
    ExpectNormalized({"InstanceNormalization", {far.data, ones, zeros}, exact}, far.result);
    ExpectNormalized({"GroupNormalization", {far.data, ones, zeros}, {{"epsilon", 0.0}, {"num_groups", Int(1)}}, 21},
                     far.grouped);
    ExpectNormalized({"MeanVarianceNormalization", {far.data}, {{"axes", IntList({2})}}}, far.result);
    ExpectNormalized({"BatchNormalization",
                      {Floats({64, 2}, Numbers(far.data)), ones, zeros, zeros, ones},
                      {{"epsilon", 0.0}, {"training_mode", Int(1)}},
                      15},
                     [&] {
                       std::vector<double> columns = Numbers(far.data), result(128);
                       for (size_t c = 0; c < 2; ++c) {
                         double sum = 0, squares = 0;
                         for (size_t k = c; k < 128; k += 2) sum += (columns[k] - mean) / 64;
                         for (size_t k = c; k < 128; k += 2) squares += std::pow(columns[k] - mean - sum, 2) / 64;
                         for (size_t k = c; k < 128; k += 2) result[k] = (columns[k] - mean - sum) / std::sqrt(squares);
                       }
                       return result;
                     }());
  }
}

TEST(EdgeValues, NormalizationsWithOutliersInFrontAndInTheMiddle) {
  const std::map<std::string, Attribute> exact = {{"epsilon", 0.0}};
  const Normalized far = FarFromZero(1e4, 0.1, true);
  ExpectNormalized({"LayerNormalization", {far.data, Floats({64}, std::vector<double>(64, 1))}, exact}, far.result);
  ExpectNormalized({"InstanceNormalization", {far.data, Floats({2}, {1, 1}), Floats({2}, {0, 0})}, exact}, far.result);
}

TEST(EdgeValues, NormalizationsOfNothing) {
  ExpectOutput({"LayerNormalization", {Floats({2, 0}, {}), Floats({0}, {})}}, {2, 0}, {});
  ExpectOutput({"MeanVarianceNormalization", {Floats({0, 2}, {})}, {{"axes", IntList({0})}}}, {0, 2}, {});
}

// --- Powers

TEST(EdgeValues, PowersKeepTheBitsOfTheExponent) {
  const Constant bases = Floats({4}, {-1, -1, 1, -0.0});
  const OpCase odd{"Pow", {bases, Longs(DType::kInt64, {4}, {(1 << 24) + 1, 1 << 24, (1 << 24) + 1, (1 << 24) + 1})}};
  ExpectNumbers(odd, {-1, 1, 1, 0});
  EXPECT_TRUE(std::signbit(Outputs(odd)[3]));
  ExpectNumbers({"Pow", {bases, Longs(DType::kInt64, {}, {(1 << 24) + 1})}}, {-1, -1, 1, 0});
  ExpectNumbers({"Pow", {bases, Longs(DType::kInt64, {4}, {kExact + 1, kExact, kHighest64, kHighest64})}},
                {-1, 1, 1, 0});
  ExpectNumbers({"Pow", {Tensor(DType::kFloat64, {2}, {-1, -2}), Longs(DType::kInt64, {2}, {kHighest64, -3})}},
                {-1, -0.125});
  ExpectNumbers({"Pow", {bases, Longs(DType::kUInt64, {}, {-1})}}, {-1, -1, 1, 0});
  ExpectNumbers({"Pow", {Floats({2}, {-1, -1}), Tensor(DType::kInt32, {2}, {16777217, 16777218})}}, {-1, 1});
  ExpectNumbers({"Pow", {Tensor(DType::kFloat16, {2}, {-1, 2}), Tensor(DType::kInt32, {2}, {16777217, -3})}},
                {-1, 0.125});
  ExpectNumbers({"Pow", {Floats({3}, {-0.0, kInf, -kInf}), Ints({3}, {-1, -2, 3})}}, {-kInf, 0, -kInf});
}

TEST(EdgeValues, PowersInTheWiderFloat) {
  const double third = 1.0 / 3, base = 1e30f;
  for (const Shape& shape : {Shape{}, Shape{2}}) {
    const Constant exponent = Tensor(DType::kFloat64, shape, std::vector<double>(shape.empty() ? 1 : 2, third));
    const double root = std::pow(base, third);
    EXPECT_EQ(Outputs({"Pow", {Floats({2}, {base, 8}), exponent}}), (std::vector<double>{static_cast<float>(root), 2}));
  }
  // f16: 1.5 to the power of a number that f16 and f32 round.
  const double exponent = 20 + 1e-9;
  EXPECT_EQ(Outputs({"Pow", {Tensor(DType::kFloat64, {1}, {1.5}), Tensor(DType::kFloat64, {1}, {exponent})}})[0],
            std::pow(1.5, exponent));
}

// --- Integers

TEST(EdgeValues, MeansOfIntegersDoNotOverflow) {
  const auto mean = [](DType dtype, std::vector<double> numbers) {
    return OpCase{"ReduceMean", {Tensor(dtype, {static_cast<int64_t>(numbers.size())}, numbers)}};
  };
  ExpectNumbers(mean(DType::kInt32, {2147483647, 2147483647}), {2147483647});
  ExpectNumbers(mean(DType::kUInt32, {4294967294, 4294967294}), {4294967294});
  ExpectNumbers(mean(DType::kInt32, {-2147483648.0, -2147483647, -2147483647}), {-2147483647});
  ExpectNumbers(mean(DType::kInt8, {127, 127, 126, -128, -128}), {24});
  ExpectNumbers(mean(DType::kUInt8, {255, 255, 254}), {254});
  ExpectNumbers(mean(DType::kInt32, {-1, -2}), {-1});  // truncated
  ExpectNumbers(mean(DType::kInt32, {7}), {7});
}

TEST(EdgeValues, MeansOfLongIntegersAreExact) {
  const auto mean = [](DType dtype, std::vector<int64_t> numbers) {
    return OpCase{"ReduceMean", {Longs(dtype, {static_cast<int64_t>(numbers.size())}, numbers)}};
  };
  const DType i64 = DType::kInt64, u64 = DType::kUInt64;
  ExpectExact(mean(i64, {kHighest64, kHighest64, kHighest64}), {kHighest64});
  ExpectExact(mean(i64, {kLowest64, kLowest64}), {kLowest64});
  ExpectExact(mean(i64, {kLowest64, kLowest64, kLowest64 + 1}), {kLowest64 + 1});  // lowest + 1/3, truncated
  ExpectExact(mean(i64, {kLowest64, kHighest64}), {0});                            // -1/2
  ExpectExact(mean(i64, {kExact + 1, kExact + 1, kExact + 2}), {kExact + 1});
  ExpectExact(mean(i64, {-1, -2, -2}), {-1});
  ExpectExact(mean(i64, {5, -3}), {1});
  ExpectExact(mean(u64, {-1, -1, -3}), {-2});  // 2^64 - 5/3, truncated
  ExpectExact(mean(u64, {-1, 1}), {kLowest64});
  ExpectExact({"ReduceMean", {Longs(i64, {2, 2}, {kHighest64, kHighest64, 1, 2})}, {{"axes", IntList({1})}}},
              {kHighest64, 1});
}

TEST(EdgeValues, RangesOfLongIntegers) {
  const auto range = [](int64_t start, int64_t limit, int64_t delta) {
    const DType i64 = DType::kInt64;
    return OpCase{"Range", {Longs(i64, {}, {start}), Longs(i64, {}, {limit}), Longs(i64, {}, {delta})}};
  };
  ExpectExact(range(kExact, kExact + 3, 1), {kExact, kExact + 1, kExact + 2});
  ExpectExact(range(kExact, kExact + 1, 1), {kExact});
  ExpectExact(range(kLowest64, kHighest64, kHighest64), {kLowest64, -1, kHighest64 - 1});
  ExpectExact(range(kHighest64, kLowest64, kLowest64), {kHighest64, -1});
  ExpectExact(range(kHighest64, kHighest64 - 1, 1), {});
  ExpectExact(range(5, 0, -2), {5, 3, 1});
}

TEST(EdgeValues, ShrinkKeepsLongIntegers) {
  const auto shrink = [](DType dtype, std::vector<int64_t> numbers, double lambd, double bias) {
    const Constant x = Longs(dtype, {static_cast<int64_t>(numbers.size())}, numbers);
    return OpCase{"Shrink", {x}, {{"lambd", lambd}, {"bias", bias}}};
  };
  const DType i64 = DType::kInt64, u64 = DType::kUInt64;
  ExpectExact(shrink(i64, {kExact + 1, -kExact - 1, 0, 1, -1}, 0.5, 0), {kExact + 1, -kExact - 1, 0, 1, -1});
  ExpectExact(shrink(i64, {kExact + 3, -kExact - 3, 1, 2, -2}, 1, 2), {kExact + 1, -kExact - 1, 0, 0, 0});
  ExpectExact(shrink(i64, {kHighest64, kLowest64, 3, -3}, 0.5, -1.5), {kHighest64, kLowest64, 4, -4});  // saturated
  ExpectExact(shrink(i64, {3, -3, 1, -1, 2, -2}, 0.5, 1.5), {1, -1, 0, 0, 0, 0});
  ExpectExact(shrink(i64, {3, -3, 0}, -kInf, 1), {4, -2, 1});  // every number is below infinity
  ExpectExact(shrink(i64, {3, -3, kHighest64}, kInf, 1), {0, 0, 0});
  ExpectExact(shrink(u64, {-1, 0, 1, 5}, 1, 2), {-3, 0, 0, 3});
  ExpectExact(shrink(u64, {-1, 0, 5}, 0.5, 7), {-8, 0, 0});  // 5 - 7 is saturated
}

// --- Attributes

// ONNX stores attributes as f32: in a model of f64, 0.01 is the f32 nearest to it.
TEST(EdgeValues, AttributesOfDoubleModelsAreSingle) {
  const Constant x = Tensor(DType::kFloat64, {2}, {-1, 2});
  const double alpha = 0.01f;
  EXPECT_EQ(Outputs({"LeakyRelu", {x}})[0], -alpha);
  EXPECT_EQ(Outputs({"LeakyRelu", {x}, {{"alpha", 0.01}}})[0], -alpha);
  EXPECT_EQ(Outputs({"HardSigmoid", {x}})[1], 2 * static_cast<double>(0.2f) + 0.5);
  EXPECT_EQ(Outputs({"Clip", {x}, {{"min", -0.1}, {"max", 0.1}}, 6}), (std::vector<double>{-0.1f, 0.1f}));
  const Constant one = Tensor(DType::kFloat64, {1, 1}, {1});
  EXPECT_EQ(Outputs({"Gemm", {one, one}, {{"alpha", 0.1}}})[0], 0.1f);
  EXPECT_EQ(Outputs({"Pad", {one}, {{"pads", IntList({0, 1, 0, 0})}, {"value", 0.1}}, 2})[0], 0.1f);
  const Constant zero = Tensor(DType::kFloat64, {1}, {0}), unit = Tensor(DType::kFloat64, {1}, {1});
  const OpCase batch{"BatchNormalization", {one, unit, zero, zero, zero}};
  EXPECT_DOUBLE_EQ(Outputs(batch)[0], 1 / std::sqrt(static_cast<double>(1e-5f)));
  const Constant cell = Tensor(DType::kFloat64, {1, 1, 1}, {-1});
  const OpCase rnn{"RNN",
                   {cell, Tensor(DType::kFloat64, {1, 1, 1}, {1}), Tensor(DType::kFloat64, {1, 1, 1}, {1})},
                   {{"activations", std::vector<std::string>{"LeakyRelu"}}, {"hidden_size", Int(1)}},
                   14,
                   2};
  EXPECT_EQ(Outputs(rnn)[0], -alpha);
}

// --- Zeros

TEST(EdgeValues, SignOfNegativeZeroIsZero) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const std::vector<double> signs = Outputs({"Sign", {Tensor(dtype, {4}, {-0.0, 0, kNan, -2})}});
    ASSERT_EQ(signs.size(), 4u);
    EXPECT_FALSE(std::signbit(signs[0]));
    EXPECT_EQ(signs[0], 0);
    EXPECT_EQ(signs[1], 0);
    EXPECT_TRUE(std::isnan(signs[2]));
    EXPECT_EQ(signs[3], -1);
  }
}

// --- Shapes and pools

TEST(EdgeValues, CropAndResizeByScales) {
  const auto crop = [](Shape shape, std::vector<double> roi, std::vector<double> scales, const std::string& mode) {
    const int64_t n = static_cast<int64_t>(scales.size());
    return OpCase{"Resize",
                  {Counting(std::move(shape)), Floats({2 * n}, std::move(roi)), Floats({n}, std::move(scales))},
                  {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}, {"mode", mode}},
                  13};
  };
  // floor(8 * (0.75 - 0.25) * 1) = 4 positions from 0.25 * 7 to 0.75 * 7.
  ExpectNumbers(crop({8}, {0.25, 0.75}, {1}, "linear"), {1.75, 1.75 + 3.5 / 3, 1.75 + 7.0 / 3, 5.25});
  ExpectOutput(crop({2, 4}, {0, 0.5, 1, 1}, {1, 1}, "linear"), {2, 2}, {1.5, 3, 5.5, 7});
  ExpectNumbers(crop({4}, {0, 1}, {2}, "nearest"), {0, 0, 1, 1, 2, 2, 3, 3});
  const auto backwards = RunCase(crop({4}, {0.75, 0.25}, {1}, "linear"));
  EXPECT_EQ(backwards.status().code(), absl::StatusCode::kInvalidArgument) << backwards.status();
}

// The largest of the four neighbours, each times its weight, as ONNX's reference and its case of opset 22 have it.
TEST(EdgeValues, RoiAlignTakesTheLargestWeightedNeighbour) {
  const auto align = [](Constant data, int samples) {
    return OpCase{"RoiAlign",
                  {std::move(data), Floats({1, 4}, {0, 0, 2, 2}), Ints({1}, {0})},
                  {{"sampling_ratio", Int(samples)},
                   {"mode", std::string("max")},
                   {"coordinate_transformation_mode", std::string("output_half_pixel")}},
                  22};
  };
  // One sample at (1, 1): the neighbour itself, with weight 1. The others have weight 0.
  ExpectOutput(align(Counting({1, 1, 4, 4}), 1), {1, 1, 1, 1}, {5});
  // Samples at 0.5 and 1.5: each neighbour has weight 1/4. The largest is element 10.
  ExpectOutput(align(Counting({1, 1, 4, 4}), 2), {1, 1, 1, 1}, {2.5});
  std::vector<double> negative(16, -4);
  ExpectOutput(align(Floats({1, 1, 4, 4}, negative), 2), {1, 1, 1, 1}, {-1});
  ExpectOutput(align(Floats({1, 1, 4, 4}, negative), 1), {1, 1, 1, 1}, {0});  // neighbours of weight 0
}

TEST(EdgeValues, QuantizedProductsWithAScalePerRow) {
  const DType u8 = DType::kUInt8;
  const Constant a = Tensor(u8, {2, 2}, {1, 2, 3, 4}), b = Tensor(u8, {2, 2}, {1, 2, 3, 4});
  const Constant zero = Tensor(u8, {}, {0}), one = Floats({}, {1});
  const Constant rows = Floats({2}, {1, 2}), row_zeros = Tensor(u8, {2}, {0, 1});
  ExpectOutput({"QLinearMatMul", {a, rows, row_zeros, b, one, zero, one, zero}}, {2, 2}, {7, 10, 22, 32});
  ExpectOutput({"QLinearMatMul", {a, rows, row_zeros, b, Floats({2}, {1, 3}), zero, one, zero}}, {2, 2},
               {7, 30, 22, 96});
  // y = a * b / y_scale + y_zero_point, both per row.
  ExpectOutput({"QLinearMatMul", {a, one, zero, b, one, zero, rows, Tensor(u8, {2}, {1, 2})}}, {2, 2}, {8, 11, 10, 13});
  const Constant stack = Tensor(u8, {2, 1, 2}, {1, 2, 3, 4});
  const Constant per_row = Floats({2, 1, 1}, {1, 2}), per_column = Floats({1, 1, 2}, {1, 3});
  ExpectOutput({"QLinearMatMul",
                {stack, per_row, Tensor(u8, {2, 1, 1}, {0, 1}), Tensor(u8, {1, 2, 2}, {1, 2, 3, 4}), per_column,
                 Tensor(u8, {1, 1, 2}, {0, 0}), one, zero}},
               {2, 1, 2}, {7, 30, 22, 96});
}

}  // namespace
}  // namespace hone::graph
