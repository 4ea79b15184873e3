// SPDX-License-Identifier: Apache-2.0
// The 16-bit float formats f16 (IEEE 754 binary16) and bf16 (the upper half of a binary32), from and to double.
// The compiler, which needs one correct rounding, and the agent share them.
#ifndef HONE_BASE_HALF_FLOAT_H_
#define HONE_BASE_HALF_FLOAT_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hone {

// A format with one sign bit.
template <int exponent_bits, int mantissa_bits>
struct Float16Format {
  static constexpr int kBias = (1 << (exponent_bits - 1)) - 1;
  static constexpr uint16_t kInfinity = ((1 << exponent_bits) - 1) << mantissa_bits;
  static constexpr int kDoubleMantissa = 52, kDoubleBias = 1023;

  // The nearest value, ties to even. Any NaN becomes the positive quiet NaN without payload.
  static uint16_t Round(double value) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const auto sign = static_cast<uint16_t>((bits >> 63) << 15);
    if (std::isnan(value)) return kInfinity | static_cast<uint16_t>(1 << (mantissa_bits - 1));
    if (std::isinf(value)) return sign | kInfinity;
    int exponent = static_cast<int>((bits >> kDoubleMantissa) & 0x7ff) - kDoubleBias;
    if (exponent == -kDoubleBias) return sign;  // zero, or below 2^-1022: far smaller than any 16-bit subnormal
    const uint64_t significand = (bits & ((uint64_t{1} << kDoubleMantissa) - 1)) | (uint64_t{1} << kDoubleMantissa);
    int shift = kDoubleMantissa - mantissa_bits;
    if (exponent < 1 - kBias) {
      shift += (1 - kBias) - exponent;
      exponent = -kBias;
    } else {
      exponent -= 1;  // the addition below carries the implicit bit into the exponent field
    }
    if (shift > kDoubleMantissa + 1) return sign;
    uint64_t kept = significand >> shift;
    const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
    const uint64_t half = uint64_t{1} << (shift - 1);
    if (rest > half || (rest == half && (kept & 1))) ++kept;
    const uint64_t result = (static_cast<uint64_t>(exponent + kBias) << mantissa_bits) + kept;
    return sign | (result >= kInfinity ? kInfinity : static_cast<uint16_t>(result));
  }

  // Exact. Any NaN becomes the quiet NaN of the C++ library.
  static double Widen(uint16_t bits) {
    const int exponent = (bits & 0x7fff) >> mantissa_bits;
    const uint64_t mantissa = bits & ((1 << mantissa_bits) - 1);
    const uint64_t sign = static_cast<uint64_t>(bits >> 15) << 63;
    if (exponent == (1 << exponent_bits) - 1) {
      if (mantissa != 0) return std::numeric_limits<double>::quiet_NaN();
      return std::bit_cast<double>(sign | std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity()));
    }
    if (exponent == 0) {
      constexpr double kUnit = std::bit_cast<double>(static_cast<uint64_t>(kDoubleBias + 1 - kBias - mantissa_bits)
                                                     << kDoubleMantissa);  // the smallest subnormal
      const double magnitude = static_cast<double>(mantissa) * kUnit;
      return sign != 0 ? -magnitude : magnitude;
    }
    return std::bit_cast<double>(sign | static_cast<uint64_t>(exponent - kBias + kDoubleBias) << kDoubleMantissa |
                                 mantissa << (kDoubleMantissa - mantissa_bits));
  }
};

inline uint16_t HalfBits(double value) { return Float16Format<5, 10>::Round(value); }
inline double FromHalfBits(uint16_t bits) { return Float16Format<5, 10>::Widen(bits); }
inline uint16_t BFloatBits(double value) { return Float16Format<8, 7>::Round(value); }
inline double FromBFloatBits(uint16_t bits) { return Float16Format<8, 7>::Widen(bits); }

}  // namespace hone

#endif  // HONE_BASE_HALF_FLOAT_H_
