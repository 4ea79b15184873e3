// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/numeric.h"

#include <cmath>
#include <limits>

#include "base/half_float.h"
#include "base/status.h"

namespace hone::ir {
double RoundTo(DType float_type, double value) {
  if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
  switch (float_type) {
    case DType::kFloat16:
      return FromHalfBits(HalfBits(value));
    case DType::kBFloat16:
      return FromBFloatBits(BFloatBits(value));
    case DType::kFloat32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

int64_t WrapTo(DType int_type, int64_t value) {
  switch (int_type) {
    case DType::kBool:
      return value != 0;
    case DType::kInt8:
      return static_cast<int8_t>(value);
    case DType::kInt16:
      return static_cast<int16_t>(value);
    case DType::kInt32:
      return static_cast<int32_t>(value);
    case DType::kUInt8:
      return static_cast<uint8_t>(value);
    case DType::kUInt16:
      return static_cast<uint16_t>(value);
    case DType::kUInt32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

int64_t LowestInt(DType int_type) {
  if (!IsSignedInt(int_type)) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * SizeOf(int_type));
}

int64_t HighestInt(DType int_type) {
  HONE_CHECK(IsInt(int_type));
  const int bits = 8 * SizeOf(int_type);
  const uint64_t ones = ~uint64_t{0} >> (64 - bits);
  return static_cast<int64_t>(IsSignedInt(int_type) ? ones >> 1 : ones);
}

int64_t FloatToInt(DType int_type, double value) {
  if (int_type == DType::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  if (int_type == DType::kUInt64) {
    if (value <= 0) return 0;
    if (value >= 0x1p64) return -1;
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  const int64_t lowest = LowestInt(int_type), highest = HighestInt(int_type);
  // 2^63 is the first double above the highest int64. The bounds of narrower types are exact doubles.
  if (value >= static_cast<double>(highest)) return highest;
  if (value <= static_cast<double>(lowest)) return lowest;
  return static_cast<int64_t>(value);
}

double IntToFloat(DType int_type, int64_t value, DType float_type) {
  const bool is_u64 = int_type == DType::kUInt64;
  if (float_type == DType::kFloat32) {
    return is_u64 ? static_cast<float>(static_cast<uint64_t>(value)) : static_cast<float>(value);
  }
  double wide = is_u64 ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
  if (float_type == DType::kFloat64) return wide;
  if (std::abs(wide) > 0x1p53) {
    // Sticky bit: sets the lowest bit if the conversion to double was inexact, so that the second rounding breaks ties
    // correctly.
    const bool negative = !is_u64 && value < 0;
    const uint64_t magnitude = negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
    const uint64_t odd = (magnitude & ~uint64_t{0xfff}) | ((magnitude & 0xfff) != 0 ? 0x1000 : 0);
    wide = negative ? -static_cast<double>(odd) : static_cast<double>(odd);
  }
  return RoundTo(float_type, wide);
}

}  // namespace hone::ir
