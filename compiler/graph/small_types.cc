// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/small_types.h"

#include <cmath>
#include <limits>

#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/ir/elements.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::DType;

constexpr SmallType kSmallTypes[] = {
    {17, "float8e4m3fn", 8, DType::kFloat16}, {18, "float8e4m3fnuz", 8, DType::kFloat16},
    {19, "float8e5m2", 8, DType::kFloat16},   {20, "float8e5m2fnuz", 8, DType::kFloat16},
    {21, "uint4", 4, DType::kUInt8},          {22, "int4", 4, DType::kInt8},
    {23, "float4e2m1", 4, DType::kFloat16},   {24, "float8e8m0", 8, DType::kFloat32},
    {25, "uint2", 2, DType::kUInt8},          {26, "int2", 2, DType::kInt8},
};

// A float of a sign, `exponent_bits` and `mantissa_bits`.
double DecodeFloat(int bits, int exponent_bits, int mantissa_bits, int bias) {
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double sign = ((bits >> (mantissa_bits + exponent_bits)) & 1) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

double DecodeSmall(const SmallType& type, int bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const int sign_bit = 1 << (type.bits - 1);
  switch (type.onnx) {
    case 17:  // no infinities; the largest magnitude is NaN
      return (bits & 0x7f) == 0x7f ? kNan : DecodeFloat(bits, 4, 3, 7);
    case 18:  // no infinities, and NaN in place of -0
      return bits == sign_bit ? kNan : DecodeFloat(bits, 4, 3, 8);
    case 19:
      if ((bits & 0x7f) < 0x7c) return DecodeFloat(bits, 5, 2, 15);
      if ((bits & 3) != 0) return kNan;
      return bits == 0x7c ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    case 20:
      return bits == sign_bit ? kNan : DecodeFloat(bits, 5, 2, 16);
    case 23:
      return DecodeFloat(bits, 2, 1, 1);
    case 24:  // a power of 2
      return bits == 0xff ? kNan : std::ldexp(1.0, bits - 127);
    default:
      return ir::IsSignedInt(type.stored) && (bits & sign_bit) != 0 ? bits - 2 * sign_bit : bits;
  }
}

}  // namespace

const SmallType* FindSmallType(int64_t onnx_type) {
  for (const SmallType& type : kSmallTypes) {
    if (type.onnx == onnx_type) return &type;
  }
  return nullptr;
}

int64_t PackedBytes(const SmallType& type, int64_t elements) {
  const int64_t per_byte = 8 / type.bits;
  return elements / per_byte + (elements % per_byte != 0 ? 1 : 0);
}

TensorData Unpack(const SmallType& type, std::span<const std::byte> packed, int64_t elements) {
  const size_t size = static_cast<size_t>(ir::SizeOf(type.stored)), per_byte = 8 / static_cast<size_t>(type.bits);
  auto data = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(elements) * size);
  for (size_t i = 0; i < static_cast<size_t>(elements); ++i) {
    const int shift = static_cast<int>(i % per_byte) * type.bits;
    const int bits = (std::to_integer<int>(packed[i / per_byte]) >> shift) & ((1 << type.bits) - 1);
    ir::WriteElement(ir::MakeConst({type.stored, 1}, DecodeSmall(type, bits)), data->data() + i * size);
  }
  return data;
}

bool MayReadSmall(const Node& node, size_t input) {
  if (KeepsSmall(node)) return true;
  if (Is(node, "Cast") || Is(node, "CastLike")) return input == 0;
  return Is(node, "DequantizeLinear") && input != 1;
}

absl::Status SmallTypeError(std::string_view what, const SmallType& type) {
  return absl::UnimplementedError(fmt::format(
      "{} has elements of type {}, which only constants may have that are cast or dequantized", what, type.name));
}

bool KeepsSmall(const Node& node) { return FactsOf(node).movement != Movement::kNone || Is(node, "Gather"); }

}  // namespace hone::graph
