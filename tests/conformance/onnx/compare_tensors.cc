// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/onnx/compare_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::conformance {
namespace {

using ir::DType;

template <typename T>
T Load(const graph::Constant& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data->data() + index * sizeof(T), sizeof(T));
  return value;
}

// Converts float16 to double by its definition.
double HalfToDouble(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double BFloat16ToDouble(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

double FloatElement(const graph::Constant& tensor, int64_t index) {
  switch (tensor.type.dtype) {
    case DType::kFloat16:
      return HalfToDouble(Load<uint16_t>(tensor, index));
    case DType::kBFloat16:
      return BFloat16ToDouble(Load<uint16_t>(tensor, index));
    case DType::kFloat32:
      return Load<float>(tensor, index);
    default:
      return Load<double>(tensor, index);
  }
}

std::string IntElement(const graph::Constant& tensor, int64_t index) {
  switch (tensor.type.dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return fmt::format("{}", Load<uint8_t>(tensor, index));
    case DType::kUInt16:
      return fmt::format("{}", Load<uint16_t>(tensor, index));
    case DType::kUInt32:
      return fmt::format("{}", Load<uint32_t>(tensor, index));
    case DType::kUInt64:
      return fmt::format("{}", Load<uint64_t>(tensor, index));
    case DType::kInt8:
      return fmt::format("{}", Load<int8_t>(tensor, index));
    case DType::kInt16:
      return fmt::format("{}", Load<int16_t>(tensor, index));
    case DType::kInt32:
      return fmt::format("{}", Load<int32_t>(tensor, index));
    default:
      return fmt::format("{}", Load<int64_t>(tensor, index));
  }
}

absl::Status CompareInts(const graph::Constant& actual, const graph::Constant& expected) {
  for (int64_t i = 0; i < expected.type.elements().value(); ++i) {
    const std::string found = IntElement(actual, i);
    const std::string wanted = IntElement(expected, i);
    if (found != wanted) {
      return absl::DataLossError(fmt::format("wrong output: element {} is {}, should be {}", i, found, wanted));
    }
  }
  return absl::OkStatus();
}

double LargestFinite(const graph::Constant& tensor) {
  double largest = 0.0;
  for (int64_t i = 0; i < tensor.type.elements().value(); ++i) {
    const double value = std::abs(FloatElement(tensor, i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

absl::Status CompareFloats(const graph::Constant& actual, const graph::Constant& expected, bool rounded) {
  const bool half = rounded || ir::SizeOf(expected.type.dtype) == 2;
  const double relative = half ? 2e-3 : 1e-3;
  // If large terms cancel, the error of the sum is relative to the terms.
  const double absolute = (half ? 1e-3 : 1e-5) * std::max(1.0, LargestFinite(expected));
  double worst = 1.0;  // worst difference so far, as a multiple of the tolerance
  absl::Status status;
  for (int64_t i = 0; i < expected.type.elements().value(); ++i) {
    const double found = FloatElement(actual, i);
    const double wanted = FloatElement(expected, i);
    if (found == wanted || (std::isnan(found) && std::isnan(wanted))) continue;
    const double error = std::abs(found - wanted) / (absolute + relative * std::abs(wanted));
    if (error <= worst) continue;
    worst = std::isnan(error) ? INFINITY : error;
    status = absl::DataLossError(fmt::format("wrong output: element {} is {}, should be {}", i, found, wanted));
  }
  return status;
}

}  // namespace

absl::Status CompareTensors(const graph::Constant& actual, const graph::Constant& expected, bool rounded) {
  if (actual.type.dtype != expected.type.dtype) {
    return absl::DataLossError(
        fmt::format("wrong output: the type is {}, should be {}", Name(actual.type.dtype), Name(expected.type.dtype)));
  }
  if (actual.type.shape != expected.type.shape) {
    return absl::DataLossError(fmt::format("wrong output: the shape is [{}], should be [{}]",
                                           fmt::join(actual.type.shape, ","), fmt::join(expected.type.shape, ",")));
  }
  const bool floats = ir::IsFloat(expected.type.dtype);
  return floats ? CompareFloats(actual, expected, rounded) : CompareInts(actual, expected);
}

}  // namespace hone::conformance
