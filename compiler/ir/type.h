// SPDX-License-Identifier: Apache-2.0
// Element types and vector types of the IR.
//
// A Type is an element type and a width, its number of elements. Width 1 is a scalar. A bool takes one byte, 0 or 1.
// float16 and bfloat16 are storage types: the importer inserts casts to float32 around arithmetic, so no back end needs
// it in 16 bits.
#ifndef HONE_COMPILER_IR_TYPE_H_
#define HONE_COMPILER_IR_TYPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hone::ir {

enum class DType : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};

int SizeOf(DType dtype);  // bytes of one element in memory; bool is 1
bool IsFloat(DType dtype);
bool IsSignedInt(DType dtype);
bool IsUnsignedInt(DType dtype);     // false for bool
bool IsInt(DType dtype);             // signed or unsigned, not bool
std::string_view Name(DType dtype);  // "bool", "i8", "u32", "f16", "bf16", "f32", ...
std::optional<DType> ParseDType(std::string_view name);

struct Type {
  DType dtype = DType::kInt64;
  int width = 1;
  bool operator==(const Type&) const = default;
  Type WithWidth(int n) const { return {dtype, n}; }
  Type Element() const { return {dtype, 1}; }
};

std::string ToString(Type type);                       // "f32", "f32x16"
std::optional<Type> ParseType(std::string_view text);  // the inverse of ToString

inline constexpr Type kIndexType{DType::kInt64, 1};  // loop variables and indices
inline constexpr Type kBoolType{DType::kBool, 1};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_TYPE_H_
