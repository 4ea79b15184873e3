// SPDX-License-Identifier: Apache-2.0
#include "deploy/run/random_values.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace hone::run {
namespace {

using package::DType;

// Rounds toward zero, unlike base/half_float.h, so that a value stays in its range. Values below the normal numbers
// become zero, values above the range the largest number. This is precise enough for random data.
uint16_t ToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const int exponent = static_cast<int>((bits >> 23) & 0xff) - 127 + 15;
  if (exponent <= 0) return static_cast<uint16_t>(sign);
  if (exponent >= 31) return static_cast<uint16_t>(sign | 0x7bff);
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(exponent) << 10) | ((bits >> 13) & 0x3ff));
}

uint16_t ToBFloat16(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }

template <typename T, typename Draw>
void Fill(std::span<uint8_t> bytes, const Draw& draw) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = static_cast<T>(draw());
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

}  // namespace

ValueRange DefaultRange(DType dtype) {
  const bool is_float =
      dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
  return is_float ? ValueRange{-1, 1} : ValueRange{0, 2};
}

void FillRandom(DType dtype, ValueRange range, Random& random, std::span<uint8_t> bytes) {
  const double width = range.high > range.low ? range.high - range.low : 0;
  const auto real = [&] { return range.low + width * random.Uniform(); };
  const auto first = static_cast<int64_t>(std::ceil(range.low));
  const auto count = static_cast<int64_t>(std::ceil(range.high)) - first;
  const auto whole = [&] { return first + (count > 0 ? random.Below(count) : 0); };
  switch (dtype) {
    case DType::kBool:
      return Fill<uint8_t>(bytes, [&] { return random.Below(2); });
    case DType::kInt8:
    case DType::kUInt8:
      return Fill<uint8_t>(bytes, whole);
    case DType::kInt16:
    case DType::kUInt16:
      return Fill<uint16_t>(bytes, whole);
    case DType::kInt32:
    case DType::kUInt32:
      return Fill<uint32_t>(bytes, whole);
    case DType::kInt64:
    case DType::kUInt64:
      return Fill<uint64_t>(bytes, whole);
    case DType::kFloat16:
      return Fill<uint16_t>(bytes, [&] { return ToHalf(static_cast<float>(real())); });
    case DType::kBFloat16:
      return Fill<uint16_t>(bytes, [&] { return ToBFloat16(static_cast<float>(real())); });
    case DType::kFloat32:
      return Fill<float>(bytes, real);
    case DType::kFloat64:
      return Fill<double>(bytes, real);
  }
}

void FillRandomInputs(std::span<const RandomInput> inputs, std::span<const package::InputRange> ranges, uint64_t seed) {
  Random random(seed);
  for (const RandomInput& input : inputs) {
    ValueRange range = DefaultRange(input.dtype);
    for (const package::InputRange& given : ranges) {
      if (given.name == input.name) range = {given.low, given.high};
    }
    FillRandom(input.dtype, range, random, input.bytes);
  }
}

}  // namespace hone::run
