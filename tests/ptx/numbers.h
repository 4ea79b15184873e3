// SPDX-License-Identifier: Apache-2.0
// Floats of 16 bits, and rounding in every direction. Written without compiler/, so that the machine is an independent
// check of the code that the compiler generates.
#ifndef HONE_TESTS_PTX_NUMBERS_H_
#define HONE_TESTS_PTX_NUMBERS_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/ptx/instruction.h"

namespace hone::ptx {

// A float format: bits of fraction, and the exponents of the smallest and the largest normal number.
struct Format {
  int fraction, least, most;
};
inline constexpr Format kF16{10, -14, 15}, kBf16{7, -126, 127}, kF32{23, -126, 127}, kF64{52, -1022, 1023};

long double RoundWhole(long double x, Rounding rounding);
// x rounded to the format.
long double RoundTo(Format format, long double x, Rounding rounding);

inline float FromF16(uint16_t half) {
  const uint32_t sign = (half & 0x8000U) << 16, rest = half & 0x7fffU;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000U | rest << 13);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(rest << 13) * 0x1p112F));
}
inline float FromBf16(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }
// The value of an operand in TF32: only ten bits of the fraction are read.
inline float CutOff(uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000U); }
// A NaN becomes the NaN that devices produce.
uint16_t ToF16(long double x, Rounding rounding = Rounding::kNearest);
uint16_t ToBf16(long double x, Rounding rounding = Rounding::kNearest);

inline float Flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }

// A result in f64, rounded to odd: the last bit is set if the result is inexact. Rounding it again, to fewer bits, acts
// as one rounding.
struct Odd {
  double value = 0;
};
Odd Fma(Odd a, Odd b, Odd c);
inline Odd operator+(Odd a, Odd b) { return Fma(a, {1}, b); }
inline Odd operator-(Odd a, Odd b) { return Fma(a, {1}, {-b.value}); }
inline Odd operator*(Odd a, Odd b) { return Fma(a, b, {-0.0}); }
inline Odd operator-(Odd a) { return {-a.value}; }
inline float Fma(float a, float b, float c) { return std::fma(a, b, c); }
inline double Fma(double a, double b, double c) { return std::fma(a, b, c); }

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_NUMBERS_H_
