// SPDX-License-Identifier: Apache-2.0
#include "deploy/diff/compare_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/half_float.h"

namespace hone::diff {
namespace {

using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

template <typename T>
std::span<const uint8_t> Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
Comparison Compare(DType dtype, const std::vector<T>& actual, const std::vector<T>& expected,
                   Tolerance tolerance = {}) {
  return CompareElements(dtype, Bytes(actual), Bytes(expected), tolerance);
}

TEST(CompareElements, AnElementMayDifferByAShareOfItselfAndOfTheLargest) {
  const std::vector<float> expected = {1, -10, 0.5F, 0};
  const std::vector<float> actual = {1.1F, -10, 0.5F, 0.2F};
  EXPECT_EQ(Compare(DType::kFloat32, actual, expected).wrong, 2);
  EXPECT_EQ(Compare(DType::kFloat32, actual, expected, {.relative = 0.11}).wrong, 1);
  EXPECT_EQ(Compare(DType::kFloat32, actual, expected, {.absolute = 0.011}).wrong, 1);
  const Comparison all = Compare(DType::kFloat32, actual, expected, {.absolute = 0.021});
  EXPECT_EQ(all.wrong, 0);
  EXPECT_EQ(all.elements, 4);
  EXPECT_EQ(all.worst, 3);
  EXPECT_FLOAT_EQ(all.max_error, 0.2);
  EXPECT_FLOAT_EQ(all.RelativeError(), 0.02);
  EXPECT_EQ(all.expected, 0);
  EXPECT_FLOAT_EQ(all.actual, 0.2);
  EXPECT_EQ(all.histogram[0], 2);
  EXPECT_EQ(all.histogram[6] + all.histogram[7], 2);
}

TEST(CompareElements, NanAndInfinityMatchThemselvesAlone) {
  const Tolerance wide = {.relative = 1, .absolute = 1};
  const std::vector<float> special = {kNan, kInf, -kInf, 1};
  const Comparison same = Compare(DType::kFloat32, special, special, wide);
  EXPECT_EQ(same.wrong, 0);
  EXPECT_EQ(same.worst, -1);
  EXPECT_EQ(Compare<float>(DType::kFloat32, {1, 1, kInf, kNan}, special, wide).wrong, 4);
  const Comparison one = Compare<float>(DType::kFloat32, {kNan, kInf, -kInf, kNan}, special, wide);
  EXPECT_EQ(one.wrong, 1);
  EXPECT_EQ(one.worst, 3);
  EXPECT_EQ(one.max_error, kInf);
  EXPECT_EQ(one.histogram.back(), 1);
}

TEST(CompareElements, IntegersAreComparedExactly) {
  const std::vector<int64_t> expected = {int64_t{1} << 60, 5};
  const std::vector<int64_t> actual = {(int64_t{1} << 60) + 1, 5};
  EXPECT_EQ(Compare(DType::kInt64, actual, expected, {.relative = 1}).wrong, 0);
  const Comparison exact = Compare(DType::kInt64, actual, expected);
  EXPECT_EQ(exact.wrong, 1);
  EXPECT_EQ(exact.max_error, 1);
  EXPECT_EQ(Compare<int8_t>(DType::kInt8, {1, 127, -128}, {2, -128, -127}, {.steps = 1}).wrong, 1);
  EXPECT_EQ(Compare<uint8_t>(DType::kBool, {1, 0}, {1, 1}).wrong, 1);
}

TEST(CompareElements, ShortFloatsAreNumbers) {
  const std::vector<uint16_t> half = {HalfBits(1.0F), HalfBits(2.0F)}, brain = {BFloatBits(1.0F), BFloatBits(-2.0F)};
  EXPECT_EQ(Compare<uint16_t>(DType::kFloat16, {HalfBits(1.5F), HalfBits(2.0F)}, half).max_error, 0.5);
  EXPECT_EQ(Compare<uint16_t>(DType::kBFloat16, {BFloatBits(1.0F), BFloatBits(2.0F)}, brain).max_error, 4);
}

TEST(CompareElements, TensorsWithoutElementsAreEqual) {
  const Comparison none = Compare<float>(DType::kFloat32, {}, {});
  EXPECT_EQ(none.wrong, 0);
  EXPECT_EQ(none.RelativeError(), 0);
}

TEST(CompareElements, ClassesAreNamed) {
  EXPECT_EQ(ErrorClassText(0), "equal");
  EXPECT_EQ(ErrorClassText(1), "< 1e-07");
  EXPECT_EQ(ErrorClassText(8), "< 1e+00");
  EXPECT_EQ(ErrorClassText(9), ">= 1");
  EXPECT_EQ(ErrorClassText(10), "not finite");
}

TEST(InOwnOrder, UndoesTheOrderOfDimensions) {
  // A value [2, 3, 4] whose tensor has the order [4, 2, 3]: dimension 0 of the value is dimension 1 of the tensor.
  const std::vector<int64_t> shape = {2, 3, 4}, axes = {1, 2, 0};
  std::vector<int16_t> value(24), tensor(24);
  for (int i = 0; i < 24; ++i) value[static_cast<size_t>(i)] = static_cast<int16_t>(i);
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 4; ++c)
        tensor[static_cast<size_t>(c * 6 + a * 3 + b)] = value[static_cast<size_t>(a * 12 + b * 4 + c)];
    }
  }
  const std::vector<uint8_t> own = InOwnOrder(Bytes(tensor), 2, shape, axes);
  EXPECT_TRUE(std::ranges::equal(own, Bytes(value)));
}

TEST(PositionOf, CountsTheLastDimensionFirst) {
  EXPECT_THAT(PositionOf(23, std::vector<int64_t>{2, 3, 4}), ElementsAre(1, 2, 3));
  EXPECT_TRUE(PositionOf(0, {}).empty());
}

}  // namespace
}  // namespace hone::diff
