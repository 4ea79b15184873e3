// SPDX-License-Identifier: Apache-2.0
#include "device_agent/visit/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/half_float.h"
#include "base/random.h"
#include "base/status.h"

namespace hone::agent {
namespace {

struct Half {
  uint16_t bits;
  operator double() const { return FromHalfBits(bits); }
};
struct BFloat {
  uint16_t bits;
  operator double() const { return FromBFloatBits(bits); }
};
struct Bool {
  uint8_t bits;
  operator double() const { return bits; }
};

// Calls visit(T{}) for the C++ type behind a dtype that BytesOfDType knows.
template <typename Visit>
void WithType(std::string_view dtype, Visit&& visit) {
  const auto is = [&](std::string_view name, auto zero) {
    if (dtype != name) return false;
    visit(zero);
    return true;
  };
  const bool known = is("f32", float{}) || is("f16", Half{}) || is("bf16", BFloat{}) || is("f64", double{}) ||
                     is("bool", Bool{}) || is("i8", int8_t{}) || is("i16", int16_t{}) || is("i32", int32_t{}) ||
                     is("i64", int64_t{}) || is("u8", uint8_t{}) || is("u16", uint16_t{}) || is("u32", uint32_t{}) ||
                     is("u64", uint64_t{});
  HONE_CHECK(known);
}

template <typename T>
T Draw(Random& random, double low, double high) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<uint8_t>(random.Next() >> 63)};
  } else if constexpr (std::is_integral_v<T>) {
    // 2^63 is exact in double, the largest int64 is not: stay below.
    constexpr double kInt64DoubleMax = 9223372036854774784.0;
    const double least = std::max(std::ceil(low), static_cast<double>(std::numeric_limits<T>::min()));
    const double most =
        std::min({std::floor(high), static_cast<double>(std::numeric_limits<T>::max()), kInt64DoubleMax});
    const auto from = static_cast<int64_t>(std::max(least, -kInt64DoubleMax));
    const auto span = static_cast<uint64_t>(static_cast<int64_t>(most)) - static_cast<uint64_t>(from) + 1;
    if (!(most >= least)) return static_cast<T>(from);
    const auto offset = HighHalf(random.Next(), span);
    return static_cast<T>(static_cast<uint64_t>(from) + offset);
  } else {
    const double value = low + (high - low) * random.Uniform();
    if constexpr (std::is_same_v<T, Half>) return Half{HalfBits(static_cast<float>(value))};
    if constexpr (std::is_same_v<T, BFloat>) return BFloat{BFloatBits(static_cast<float>(value))};
    if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  }
}

// |y - r|. Integers are subtracted as integers, because a double cannot tell all of them apart from 2^53 on.
template <typename T>
double ErrorOf(T y, T r) {
  if constexpr (std::is_integral_v<T>) {
    const auto wide_y = static_cast<uint64_t>(y), wide_r = static_cast<uint64_t>(r);
    return static_cast<double>(y > r ? wide_y - wide_r : wide_r - wide_y);
  } else {
    return std::abs(static_cast<double>(y) - static_cast<double>(r));
  }
}

// Whether y, which differs from r by `error`, is acceptable where r is expected. NaN matches NaN; infinity matches
// itself.
template <typename T>
bool Acceptable(T y, T r, double error, double rtol, double absolute) {
  const auto wide_y = static_cast<double>(y), wide_r = static_cast<double>(r);
  if constexpr (!std::is_integral_v<T>) {
    if (wide_y == wide_r || (std::isnan(wide_y) && std::isnan(wide_r))) return true;
  }
  return std::isfinite(wide_r) && error <= rtol * std::abs(wide_r) + absolute;
}

// For messages. The sign of a NaN means nothing.
template <typename T>
std::string Shown(T value) {
  if constexpr (std::is_integral_v<T>) {
    return fmt::format("{}", value);
  } else {
    const auto wide = static_cast<double>(value);
    return fmt::format("{:.9g}", std::isnan(wide) ? std::numeric_limits<double>::quiet_NaN() : wide);
  }
}

// How two runs of elements differ.
struct Difference {
  int64_t wrong = 0, first = -1;
  double worst = 0;  // largest |y - r| that is not NaN
};

template <typename T>
void AddErrors(Difference& difference, const T* y, const T* r, int64_t begin, int64_t end, double rtol,
               double absolute) {
  for (int64_t i = begin; i < end; ++i) {
    const double error = ErrorOf(y[i], r[i]);
    if (error > difference.worst) difference.worst = error;
    if (Acceptable(y[i], r[i], error, rtol, absolute)) continue;
    if (difference.wrong++ == 0) difference.first = i;
  }
}

// A fast check for floats, in runs of elements. Most runs are finite and right, which arithmetic shows that compilers
// vectorize. A run in doubt, also because of rounding, is checked again element by element.
constexpr int64_t kRun = 4096;
constexpr int32_t kInfinity = 0x7f80'0000;
constexpr float kBeyondRounding = 1 - 1e-5F;

int32_t Magnitude(float value) { return std::bit_cast<int32_t>(value) & 0x7fff'ffff; }  // ordered as the floats are

void AddErrors(Difference& difference, const float* y, const float* r, int64_t begin, int64_t end, double rtol,
               double absolute) {
  const float relative = static_cast<float>(rtol) * kBeyondRounding,
              least = static_cast<float>(absolute) * kBeyondRounding;
  for (; begin < end; begin += kRun) {
    const int64_t until = std::min(begin + kRun, end);
    int32_t doubts = 0, worst = 0;
    for (int64_t i = begin; i < until; ++i) {
      const float error = std::abs(y[i] - r[i]);
      doubts |= error <= relative * std::abs(r[i]) + least ? 0 : 1;
      worst = std::max(worst, Magnitude(error));
    }
    if (doubts != 0 || worst >= kInfinity) {
      AddErrors<float>(difference, y, r, begin, until, rtol, absolute);
    } else {
      difference.worst = std::max<double>(difference.worst, std::bit_cast<float>(worst));
    }
  }
}

template <typename T>
double LargestFinite(const T* r, int64_t n) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double magnitude = std::abs(static_cast<double>(r[i]));
    if (magnitude > largest && magnitude <= std::numeric_limits<double>::max()) largest = magnitude;
  }
  return largest;
}

double LargestFinite(const float* r, int64_t n) {
  int32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t magnitude = Magnitude(r[i]);
    largest = std::max(largest, magnitude < kInfinity ? magnitude : 0);
  }
  return std::bit_cast<float>(largest);
}

// The allowed relative and absolute error of an element. Integers must be equal, except rounded floats, which may round
// to the neighbouring integer.
template <typename T>
std::pair<double, double> Allowed(const VisitBuffer& buffer, const Tolerance& tolerance, double largest) {
  constexpr bool kInteger = std::is_integral_v<T>;
  if (std::is_same_v<T, Bool> || (kInteger && !buffer.rounded)) return {0, 0};
  return {tolerance.rtol, tolerance.atol * largest + (kInteger ? 1 : 0)};
}

template <typename T>
Comparison CompareTyped(const VisitBuffer& buffer, const Tolerance& tolerance, const T* y, const T* r) {
  const int64_t n = buffer.elements;
  const double largest = LargestFinite(r, n);
  const auto [rtol, absolute] = Allowed<T>(buffer, tolerance, largest);
  Difference difference;
  AddErrors(difference, y, r, 0, n, rtol, absolute);
  const auto [wrong, first, worst] = difference;
  Comparison comparison;
  comparison.equal = wrong == 0;
  comparison.max_error = largest > 0 ? worst / largest : worst;
  if (wrong == 0) return comparison;
  if (!std::isfinite(static_cast<double>(y[first]))) comparison.max_error = std::numeric_limits<double>::infinity();
  comparison.text = fmt::format("output '{}': {} of {} elements differ; element {} is {}, not {}", buffer.name, wrong,
                                n, first, Shown(y[first]), Shown(r[first]));
  return comparison;
}

}  // namespace

void Fill(const VisitBuffer& buffer, int position, uint64_t fill_seed, void* data) {
  Random random = Random::Nth(fill_seed, static_cast<uint64_t>(position));
  WithType(buffer.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* elements = static_cast<T*>(data);
    for (int64_t i = 0; i < buffer.elements; ++i) elements[i] = Draw<T>(random, buffer.low, buffer.high);
  });
}

Comparison Compare(const VisitBuffer& buffer, const Tolerance& tolerance, const void* output, const void* reference) {
  // Most candidates compute the same bytes; NaN bytes that agree are equal too.
  if (std::memcmp(output, reference, static_cast<size_t>(buffer.bytes)) == 0) return Comparison{true, 0, ""};
  Comparison comparison;
  WithType(buffer.dtype, [&](auto zero) {
    using T = decltype(zero);
    comparison = CompareTyped(buffer, tolerance, static_cast<const T*>(output), static_cast<const T*>(reference));
  });
  return comparison;
}

}  // namespace hone::agent
