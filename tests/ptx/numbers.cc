// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/numbers.h"

namespace hone::ptx {

long double RoundWhole(long double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(x);
    case Rounding::kZero:
      return std::trunc(x);
    case Rounding::kDown:
      return std::floor(x);
    case Rounding::kUp:
      return std::ceil(x);
  }
  return x;
}

long double RoundTo(Format format, long double x, Rounding rounding) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), format.least);
  const long double unit = std::ldexp(1.0L, exponent - format.fraction);
  const long double rounded = RoundWhole(x / unit, rounding) * unit;
  const long double most = std::ldexp(2.0L - std::ldexp(1.0L, -format.fraction), format.most);
  if (std::fabs(rounded) <= most) return std::copysign(rounded, x);
  const bool stays =
      rounding == Rounding::kZero || (rounding == Rounding::kDown && x > 0) || (rounding == Rounding::kUp && x < 0);
  return std::copysign(stays ? most : std::numeric_limits<long double>::infinity(), x);
}

uint16_t ToF16(long double x, Rounding rounding) {
  if (std::isnan(x)) return 0x7fff;
  const auto rounded = static_cast<float>(RoundTo(kF16, x, rounding));
  const uint32_t bits = std::bit_cast<uint32_t>(rounded), sign = bits >> 16 & 0x8000U;
  const float magnitude = std::fabs(rounded);
  if (std::isinf(rounded)) return static_cast<uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x1p-14F) return static_cast<uint16_t>(sign | static_cast<uint32_t>(magnitude * 0x1p24F));
  return static_cast<uint16_t>(sign | ((bits & 0x7fffffffU) - ((127U - 15U) << 23)) >> 13);
}

uint16_t ToBf16(long double x, Rounding rounding) {
  if (std::isnan(x)) return 0x7fff;
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(RoundTo(kBf16, x, rounding))) >> 16);
}

// The error of the sum is found by subtracting the parts that it has of both summands. The product is exact, because
// its factors have few bits.
Odd Fma(Odd a, Odd b, Odd c) {
  const double product = a.value * b.value, sum = product + c.value;
  if (!std::isfinite(sum)) return {sum};
  const double from_c = sum - product;
  const double lost = (product - (sum - from_c)) + (c.value - from_c);
  if (lost == 0 || (std::bit_cast<uint64_t>(sum) & 1) != 0) return {sum};
  return {std::nextafter(
      sum, lost > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity())};
}

}  // namespace hone::ptx
