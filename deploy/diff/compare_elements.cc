// SPDX-License-Identifier: Apache-2.0
#include "deploy/diff/compare_elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/half_float.h"
#include "base/status.h"
#include "fmt/format.h"

namespace hone::diff {
namespace {

struct Half {
  uint16_t bits;
  explicit operator double() const { return FromHalfBits(bits); }
};
struct BFloat {
  uint16_t bits;
  explicit operator double() const { return FromBFloatBits(bits); }
};

// Calls visit(T{}) for the C++ type of the elements.
template <typename Visit>
void WithType(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return visit(uint8_t{});
    case DType::kInt8:
      return visit(int8_t{});
    case DType::kInt16:
      return visit(int16_t{});
    case DType::kInt32:
      return visit(int32_t{});
    case DType::kInt64:
      return visit(int64_t{});
    case DType::kUInt16:
      return visit(uint16_t{});
    case DType::kUInt32:
      return visit(uint32_t{});
    case DType::kUInt64:
      return visit(uint64_t{});
    case DType::kFloat16:
      return visit(Half{});
    case DType::kBFloat16:
      return visit(BFloat{});
    case DType::kFloat32:
      return visit(float{});
    case DType::kFloat64:
      return visit(double{});
  }
}

template <typename T>
T At(std::span<const uint8_t> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// |a - b|; infinite if one side alone is NaN or infinite. Integers are subtracted as integers, because a double cannot
// tell all of them apart from 2^53 on.
template <typename T>
double ErrorOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto wide_a = static_cast<uint64_t>(a), wide_b = static_cast<uint64_t>(b);
    return static_cast<double>(a > b ? wide_a - wide_b : wide_b - wide_a);
  } else {
    const auto wide_a = static_cast<double>(a), wide_b = static_cast<double>(b);
    if (wide_a == wide_b || (std::isnan(wide_a) && std::isnan(wide_b))) return 0;
    const double error = std::abs(wide_a - wide_b);
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
}

constexpr double kSmallestClass = 1e-7;

int ClassOf(double share) {
  if (share == 0) return 0;
  if (!std::isfinite(share)) return kErrorClasses - 1;
  double bound = kSmallestClass;
  int number = 1;
  for (; number < kErrorClasses - 2 && share >= bound; ++number) bound *= 10;
  return number;
}

}  // namespace

std::string ErrorClassText(int number) {
  if (number == 0) return "equal";
  if (number == kErrorClasses - 1) return "not finite";
  if (number == kErrorClasses - 2) return ">= 1";
  return fmt::format("< {:.0e}", kSmallestClass * std::pow(10, number - 1));
}

Comparison CompareElements(DType dtype, std::span<const uint8_t> actual, std::span<const uint8_t> expected,
                           const Tolerance& tolerance) {
  HONE_CHECK(actual.size() == expected.size());
  Comparison result;
  WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    const size_t count = expected.size() / sizeof(T);
    result.elements = static_cast<int64_t>(count);
    for (size_t i = 0; i < count; ++i) {
      const double magnitude = std::abs(static_cast<double>(At<T>(expected, i)));
      if (std::isfinite(magnitude)) result.largest = std::max(result.largest, magnitude);
    }
    for (size_t i = 0; i < count; ++i) {
      const T a = At<T>(actual, i), e = At<T>(expected, i);
      const double error = ErrorOf(a, e);
      ++result.histogram[static_cast<size_t>(ClassOf(result.largest > 0 ? error / result.largest : error))];
      const double magnitude = std::abs(static_cast<double>(e));
      const double allowed = std::isfinite(magnitude)
                                 ? tolerance.relative * magnitude + tolerance.absolute * result.largest +
                                       static_cast<double>(tolerance.steps)
                                 : 0;
      if (!(error <= allowed)) ++result.wrong;
      if (error > result.max_error) {
        result.max_error = error;
        result.worst = static_cast<int64_t>(i);
        result.actual = static_cast<double>(a);
        result.expected = static_cast<double>(e);
      }
    }
  });
  return result;
}

std::vector<uint8_t> InOwnOrder(std::span<const uint8_t> tensor, int64_t element_bytes, std::span<const int64_t> shape,
                                std::span<const int64_t> axes) {
  const size_t rank = shape.size();
  std::vector<int64_t> stored(rank, 1), strides(rank, element_bytes);  // of the tensor's dimensions
  for (size_t i = 0; i < rank; ++i) stored[static_cast<size_t>(axes[i])] = shape[i];
  for (size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * stored[d];
  std::vector<uint8_t> result(tensor.size());
  std::vector<int64_t> position(rank, 0);
  for (size_t at = 0; at < result.size(); at += static_cast<size_t>(element_bytes)) {
    int64_t offset = 0;
    for (size_t i = 0; i < rank; ++i) offset += position[i] * strides[static_cast<size_t>(axes[i])];
    std::memcpy(result.data() + at, tensor.data() + offset, static_cast<size_t>(element_bytes));
    for (size_t i = rank; i-- > 0 && ++position[i] == shape[i];) position[i] = 0;
  }
  return result;
}

std::vector<int64_t> PositionOf(int64_t element, std::span<const int64_t> shape) {
  std::vector<int64_t> position(shape.size());
  for (size_t d = shape.size(); d-- > 0; element /= shape[d]) position[d] = element % shape[d];
  return position;
}

}  // namespace hone::diff
