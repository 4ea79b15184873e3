// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/ir/numeric.h"

namespace hone::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Type, NamesParseBack) {
  for (const auto& [dtype, name, bytes] : kDTypeRows) {
    EXPECT_EQ(ParseDType(Name(dtype)), dtype);
    EXPECT_EQ(ParseType(ToString(Type{dtype, 1})), (Type{dtype, 1}));
    EXPECT_EQ(ParseType(ToString(Type{dtype, 16})), (Type{dtype, 16}));
  }
  EXPECT_EQ(ParseDType("float"), std::nullopt);
  for (const char* bad : {"", "f32x", "f32x1", "f32x0", "f32x-4", "f32x4 ", "f32x99999999999", "xf32"}) {
    EXPECT_EQ(ParseType(bad), std::nullopt) << bad;
  }
}

TEST(Type, EveryTypeHasOneKind) {
  EXPECT_EQ(SizeOf(DType::kBool), 1);
  EXPECT_EQ(SizeOf(DType::kBFloat16), 2);
  EXPECT_EQ(SizeOf(DType::kUInt64), 8);
  for (const auto& [dtype, name, bytes] : kDTypeRows) {
    const int kinds = IsFloat(dtype) + IsSignedInt(dtype) + IsUnsignedInt(dtype) + (dtype == DType::kBool);
    EXPECT_EQ(kinds, 1) << Name(dtype);
    EXPECT_EQ(IsInt(dtype), IsSignedInt(dtype) || IsUnsignedInt(dtype));
  }
}

TEST(Numeric, WrapsToTheLowBits) {
  EXPECT_EQ(WrapTo(DType::kInt8, 128), -128);
  EXPECT_EQ(WrapTo(DType::kUInt8, -1), 255);
  EXPECT_EQ(WrapTo(DType::kInt16, 0x18000), -0x8000);
  EXPECT_EQ(WrapTo(DType::kUInt32, -1), 0xffffffff);
  EXPECT_EQ(WrapTo(DType::kUInt64, -1), -1);
  EXPECT_EQ(WrapTo(DType::kBool, 256), 1);
}

TEST(Numeric, LimitsOfIntegers) {
  EXPECT_EQ(LowestInt(DType::kInt8), -128);
  EXPECT_EQ(HighestInt(DType::kInt8), 127);
  EXPECT_EQ(LowestInt(DType::kInt64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(HighestInt(DType::kInt64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(LowestInt(DType::kUInt32), 0);
  EXPECT_EQ(HighestInt(DType::kUInt32), 0xffffffff);
  EXPECT_EQ(HighestInt(DType::kUInt64), -1);
}

TEST(Numeric, FloatToIntTruncatesAndSaturates) {
  EXPECT_EQ(FloatToInt(DType::kInt32, -2.9), -2);
  EXPECT_EQ(FloatToInt(DType::kInt8, 1000), 127);
  EXPECT_EQ(FloatToInt(DType::kInt8, -kInfinity), -128);
  EXPECT_EQ(FloatToInt(DType::kUInt8, -1), 0);
  EXPECT_EQ(FloatToInt(DType::kInt64, 0x1p63), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(FloatToInt(DType::kInt64, -0x1p63), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(FloatToInt(DType::kUInt64, 0x1p63), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(FloatToInt(DType::kUInt64, kInfinity), -1);
  EXPECT_EQ(FloatToInt(DType::kInt32, std::nan("")), 0);
  EXPECT_EQ(FloatToInt(DType::kBool, std::nan("")), 1);
  EXPECT_EQ(FloatToInt(DType::kBool, 0.25), 1);
}

TEST(Numeric, IntToFloatRoundsOnce) {
  // 2^24 + 1 is a tie in f32; one more at the far end of the integer breaks it, which a detour over double would lose.
  const int64_t tie = (int64_t{1} << 62) + (int64_t{1} << 38);
  EXPECT_EQ(IntToFloat(DType::kInt64, tie, DType::kFloat32), 0x1p62);
  EXPECT_EQ(IntToFloat(DType::kInt64, tie + 1, DType::kFloat32), 0x1p62 + 0x1p39);
  const int64_t bfloat_tie = (int64_t{1} << 62) + (int64_t{1} << 54);
  EXPECT_EQ(IntToFloat(DType::kInt64, bfloat_tie, DType::kBFloat16), 0x1p62);
  EXPECT_EQ(IntToFloat(DType::kInt64, bfloat_tie + 1, DType::kBFloat16), 0x1p62 + 0x1p55);
  EXPECT_EQ(IntToFloat(DType::kInt64, -bfloat_tie - 1, DType::kBFloat16), -0x1p62 - 0x1p55);
  EXPECT_EQ(IntToFloat(DType::kUInt64, -1, DType::kFloat64), 0x1p64);
  EXPECT_EQ(IntToFloat(DType::kInt64, 70000, DType::kFloat16), kInfinity);
}

TEST(Numeric, RoundToGivesOneNan) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const double nan = RoundTo(dtype, -std::nan("7"));
    EXPECT_TRUE(std::isnan(nan));
    EXPECT_FALSE(std::signbit(nan));
  }
  EXPECT_EQ(RoundTo(DType::kFloat32, 0.1), static_cast<double>(0.1f));
  EXPECT_EQ(RoundTo(DType::kBFloat16, 1.0 + 0x1p-8), 1.0);
}

}  // namespace
}  // namespace hone::ir
