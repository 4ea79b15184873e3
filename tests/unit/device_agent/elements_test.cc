// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

VisitBuffer BufferOf(const std::string& dtype, int64_t elements, double low = -1, double high = 1) {
  return {"y", BufferRole::kOutput, dtype, elements, elements * BytesOfDType(dtype), low, high};
}

Tolerance ToleranceOf(double rtol, double atol) { return {rtol, atol}; }

template <typename T>
std::vector<T> Filled(const std::string& dtype, double low, double high, int position = 0, uint64_t seed = 1) {
  std::vector<T> values(500);
  Fill(BufferOf(dtype, 500, low, high), position, seed, values.data());
  return values;
}

TEST(Fill, StaysInRangeAndReachesBothEndsOfIntegers) {
  for (const float value : Filled<float>("f32", 2, 3)) ASSERT_TRUE(value >= 2 && value <= 3);
  const std::vector<int32_t> ints = Filled<int32_t>("i32", -2, 2.5);
  EXPECT_EQ(*std::min_element(ints.begin(), ints.end()), -2);
  EXPECT_EQ(*std::max_element(ints.begin(), ints.end()), 2);
  for (const uint8_t value : Filled<uint8_t>("u8", -5, 1000)) ASSERT_LE(value, 255);
  const std::vector<uint8_t> bools = Filled<uint8_t>("bool", 0, 1);
  EXPECT_GT(std::count(bools.begin(), bools.end(), 1), 150);
  EXPECT_GT(std::count(bools.begin(), bools.end(), 0), 150);
  for (const int64_t value : Filled<int64_t>("i64", 5, 5)) ASSERT_EQ(value, 5);
  const std::vector<int64_t> wide = Filled<int64_t>("i64", -1e30, 1e30);
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), 0);
}

TEST(Fill, DependsOnSeedAndPositionOnly) {
  EXPECT_EQ(Filled<float>("f32", 0, 1), Filled<float>("f32", 0, 1));
  EXPECT_NE(Filled<float>("f32", 0, 1, 0), Filled<float>("f32", 0, 1, 1));
  EXPECT_NE(Filled<float>("f32", 0, 1, 0, 1), Filled<float>("f32", 0, 1, 0, 2));
}

// A kernel that reads a[i + 1] for b[i] must not be right.
TEST(Fill, NoBufferIsAnotherOneShifted) {
  std::set<double> elements;
  for (int position = 0; position < 4; ++position) {
    for (const double value : Filled<double>("f64", 0, 1, position)) {
      EXPECT_TRUE(elements.insert(value).second) << "buffer " << position;
    }
  }
}

TEST(Compare, ToleranceIsRelativeToTheElementAndToTheLargest) {
  const std::vector<float> reference{100, 1, 0}, near{100.05f, 1, 0.05f}, far{100, 1.3f, 0};
  const VisitBuffer buffer = BufferOf("f32", 3);
  EXPECT_TRUE(Compare(buffer, ToleranceOf(1e-3, 1e-3), near.data(), reference.data()).equal);
  EXPECT_FALSE(Compare(buffer, ToleranceOf(1e-3, 0), near.data(), reference.data()).equal);
  const Comparison wrong = Compare(buffer, ToleranceOf(1e-3, 1e-3), far.data(), reference.data());
  EXPECT_FALSE(wrong.equal);
  EXPECT_THAT(wrong.text, HasSubstr("1 of 3 elements differ; element 1 is 1.29999995, not 1"));
  EXPECT_NEAR(wrong.max_error, 0.003, 1e-5);
}

TEST(Compare, NanEqualsOnlyNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const VisitBuffer buffer = BufferOf("f32", 3);
  const std::vector<float> reference{nan, inf, 1}, same{-nan, inf, 1.0000001f}, other{nan, 1e30f, 1},
      bad{nan, inf, nan};
  EXPECT_TRUE(Compare(buffer, ToleranceOf(1e-5, 1e-5), same.data(), reference.data()).equal);
  EXPECT_FALSE(Compare(buffer, ToleranceOf(1e-5, 1e-5), other.data(), reference.data()).equal);
  EXPECT_FALSE(Compare(buffer, ToleranceOf(1e-5, 1e-5), bad.data(), reference.data()).equal);
}

TEST(Compare, FindsOneWrongElementAtAnyPosition) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  constexpr int64_t kElements = 10'000;
  std::vector<float> reference(kElements), output(kElements);
  for (size_t i = 0; i < reference.size(); ++i) {
    reference[i] = std::sin(static_cast<float>(i));
    output[i] = reference[i] * (1 + 1e-6F);
  }
  const VisitBuffer buffer = BufferOf("f32", kElements);
  const Tolerance tolerance = ToleranceOf(1e-5, 1e-6);
  EXPECT_TRUE(Compare(buffer, tolerance, output.data(), reference.data()).equal);
  for (const size_t at : {0, 17, 4095, 4096, 8191, 9999}) {
    for (const auto& [value, wanted, equal] : {std::tuple(2.0F, 2.00003F, false),
                                               {2.0F, 2.00001F, true},
                                               {1e30F, kInf, false},
                                               {kInf, 1e30F, false},
                                               {kInf, kInf, true},
                                               {-kInf, kInf, false},
                                               {kNan, 1.0F, false},
                                               {1.0F, kNan, false},
                                               {kNan, kNan, true}}) {
      std::vector<float> y = output, r = reference;
      y[at] = value;
      r[at] = wanted;
      const Comparison comparison = Compare(buffer, tolerance, y.data(), r.data());
      EXPECT_EQ(comparison.equal, equal) << value << " for " << wanted << " at " << at;
      if (equal) continue;
      EXPECT_THAT(comparison.text, HasSubstr("1 of 10000 elements differ; element " + std::to_string(at)));
    }
  }
}

// Beside the tolerance, where rounding could decide.
TEST(Compare, FloatAndDoubleToleranceAgree) {
  Random random(3);
  for (int i = 0; i < 10'000; ++i) {
    const auto reference = static_cast<float>(random.Uniform());
    const auto output =
        static_cast<float>(reference + (1e-5 * reference + 1e-6) * (1 + 1e-4 * (random.Uniform() - 0.5)));
    const double wide_reference = reference, wide_output = output;
    const Tolerance tolerance = ToleranceOf(1e-5, 1e-6 / reference);
    EXPECT_EQ(Compare(BufferOf("f32", 1), tolerance, &output, &reference).equal,
              Compare(BufferOf("f64", 1), tolerance, &wide_output, &wide_reference).equal);
  }
}

TEST(Compare, IntegersWithEqualDoublesAreDistinct) {
  const std::vector<int64_t> reference{(int64_t{1} << 53) + 1, std::numeric_limits<int64_t>::min()};
  std::vector<int64_t> output = reference;
  const VisitBuffer buffer = BufferOf("i64", 2);
  --output[0];
  const Comparison wrong = Compare(buffer, {}, output.data(), reference.data());
  EXPECT_FALSE(wrong.equal);
  EXPECT_THAT(wrong.text, HasSubstr("element 0 is 9007199254740992, not 9007199254740993"));
  EXPECT_GT(wrong.max_error, 0);
  output = {reference[0], std::numeric_limits<int64_t>::max()};
  EXPECT_NEAR(Compare(buffer, {}, output.data(), reference.data()).max_error, 2, 1e-9);
  const std::vector<uint64_t> most{std::numeric_limits<uint64_t>::max()}, less{most[0] - 1};
  EXPECT_FALSE(Compare(BufferOf("u64", 1), {}, less.data(), most.data()).equal);
}

// The tolerance is that of the values beside which a TopK gives its positions.
TEST(Compare, IntegersMustBeEqualUnlessTheyAreRoundedFloats) {
  const std::vector<int64_t> reference{400'000, 0}, next{400'001, 0}, far{400'000, 500};
  const Tolerance tolerance = ToleranceOf(1e-3, 1e-3);
  VisitBuffer buffer = BufferOf("i64", 2);
  EXPECT_THAT(Compare(buffer, tolerance, next.data(), reference.data()).text, HasSubstr("is 400001, not 400000"));
  buffer.rounded = true;
  EXPECT_TRUE(Compare(buffer, tolerance, next.data(), reference.data()).equal);
  EXPECT_FALSE(Compare(buffer, tolerance, far.data(), reference.data()).equal);
  const std::vector<uint8_t> one{1, 7}, two{2, 8}, three{3, 7};
  buffer = BufferOf("u8", 2);
  EXPECT_FALSE(Compare(buffer, tolerance, two.data(), one.data()).equal);
  buffer.rounded = true;
  EXPECT_TRUE(Compare(buffer, tolerance, two.data(), one.data()).equal) << "on the other side";
  EXPECT_FALSE(Compare(buffer, tolerance, three.data(), one.data()).equal);
  const std::vector<uint8_t> no{0, 1}, yes{1, 1};
  buffer = BufferOf("bool", 2);
  buffer.rounded = true;
  EXPECT_FALSE(Compare(buffer, tolerance, yes.data(), no.data()).equal);
}

TEST(Compare, EveryTypeSeesADifference) {
  for (const char* type : {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"}) {
    const VisitBuffer buffer = BufferOf(type, 2);
    ASSERT_GT(buffer.bytes, 0);
    std::vector<char> zeros(16, 0), other(16, 0);
    other[static_cast<size_t>(buffer.bytes) - 1] = 0x3f;
    EXPECT_TRUE(Compare(buffer, {}, zeros.data(), zeros.data()).equal);
    EXPECT_FALSE(Compare(buffer, {}, other.data(), zeros.data()).equal) << type;
  }
}

}  // namespace
}  // namespace hone::agent
