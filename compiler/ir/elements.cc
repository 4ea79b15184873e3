// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/elements.h"

#include <cmath>
#include <cstring>

#include "base/half_float.h"
#include "base/status.h"
#include "compiler/ir/numeric.h"

namespace hone::ir {
namespace {

template <typename T>
T Read(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

double ReadFloat(DType dtype, const std::byte* bytes) {
  switch (dtype) {
    case DType::kFloat16:
      return FromHalfBits(Read<uint16_t>(bytes));
    case DType::kBFloat16:
      return FromBFloatBits(Read<uint16_t>(bytes));
    case DType::kFloat32:
      return Read<float>(bytes);
    default:
      return Read<double>(bytes);
  }
}

}  // namespace

Expr ReadElement(DType dtype, const std::byte* bytes) {
  if (IsFloat(dtype)) return MakeFloat({dtype, 1}, ReadFloat(dtype, bytes));
  uint64_t bits = 0;  // All supported machines are little-endian, so the low bytes come first.
  std::memcpy(&bits, bytes, static_cast<size_t>(SizeOf(dtype)));
  return MakeInt({dtype, 1}, WrapTo(dtype, static_cast<int64_t>(bits)));
}

void WriteElement(const Expr& constant, std::byte* bytes) {
  const DType dtype = constant.type().dtype;
  if (const FloatImm* number = constant.As<FloatImm>()) return WriteElement(dtype, number->value, bytes);
  const IntImm* integer = constant.As<IntImm>();
  HONE_CHECK(integer != nullptr);
  std::memcpy(bytes, &integer->value, static_cast<size_t>(SizeOf(dtype)));
}

void WriteElement(DType float_type, double value, std::byte* bytes) {
  const auto write = [&](auto bits) { std::memcpy(bytes, &bits, sizeof bits); };
  switch (float_type) {
    case DType::kFloat16:
      return write(HalfBits(value));
    case DType::kBFloat16:
      return write(BFloatBits(value));
    case DType::kFloat32:
      return write(static_cast<float>(value));
    default:
      return write(value);
  }
}

double ElementAsDouble(DType dtype, const std::byte* bytes) {
  if (IsFloat(dtype)) return ReadFloat(dtype, bytes);
  return IntToFloat(dtype, ReadElement(dtype, bytes).As<IntImm>()->value, DType::kFloat64);
}

void FillRandom(DType dtype, double low, double high, Random& random, std::span<std::byte> bytes) {
  const size_t size = static_cast<size_t>(SizeOf(dtype));
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    double value = low + (high - low) * random.Uniform();
    if (!IsFloat(dtype))
      value = std::floor(low) + std::floor((std::floor(high) - std::floor(low) + 1) * random.Uniform());
    if (dtype == DType::kBool) value = static_cast<double>(random.Below(2));
    WriteElement(MakeConst({dtype, 1}, value), &bytes[at]);
  }
}

}  // namespace hone::ir
