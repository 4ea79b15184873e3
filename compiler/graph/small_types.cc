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

constexpr SmallFloat kSmallFloats[] = {
    {17, 4, 3, 7, 0x7e, 0x7f, 0x7f, true},  {18, 4, 3, 8, 0x7f, 0x80, 0x80, false},
    {19, 5, 2, 15, 0x7b, 0x7c, 0x7e, true}, {20, 5, 2, 16, 0x7f, 0x80, 0x80, false},
    {23, 2, 1, 1, 7, 7, 8, true},  // without NaN; ONNX converts NaN to -0
};

// The number of a code that is no NaN and no infinity.
double DecodeFloat(const SmallFloat& type, int bits) {
  const int mantissa = bits & ((1 << type.mantissa_bits) - 1);
  const int exponent = (bits >> type.mantissa_bits) & ((1 << type.exponent_bits) - 1);
  const double sign = ((bits >> (type.mantissa_bits + type.exponent_bits)) & 1) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - type.bias - type.mantissa_bits);
  return sign * std::ldexp((1 << type.mantissa_bits) + mantissa, exponent - type.bias - type.mantissa_bits);
}

double DecodeSmall(const SmallType& type, int bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const int sign_bit = 1 << (type.bits - 1);
  const int magnitude = bits & (sign_bit - 1);
  if (const SmallFloat* floats = FindSmallFloat(type)) {
    if (!floats->has_negative_zero && bits == sign_bit) return kNan;
    if (magnitude <= floats->largest) return DecodeFloat(*floats, bits);
    if (magnitude != floats->overflow || floats->overflow == floats->nan) return kNan;
    return bits == magnitude ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  }
  if (ir::IsFloat(type.stored)) return bits == 0xff ? kNan : std::ldexp(1.0, bits - 127);
  return ir::IsSignedInt(type.stored) && (bits & sign_bit) != 0 ? bits - 2 * sign_bit : bits;
}

}  // namespace

const SmallType* FindSmallType(int64_t onnx_type) {
  for (const SmallType& type : kSmallTypes) {
    if (type.onnx == onnx_type) return &type;
  }
  return nullptr;
}

const SmallFloat* FindSmallFloat(const SmallType& type) {
  for (const SmallFloat& floats : kSmallFloats) {
    if (floats.onnx == type.onnx) return &floats;
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
  return absl::UnimplementedError(
      fmt::format("{} has elements of type {}, which is for storage only; such elements can be cast, quantized, "
                  "dequantized or moved",
                  what, type.name));
}

bool KeepsSmall(const Node& node) { return FactsOf(node).movement != Movement::kNone || Is(node, "Gather"); }

}  // namespace hone::graph
