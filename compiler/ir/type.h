// SPDX-License-Identifier: Apache-2.0
// Vector types of the IR. Its element types are those of base/element_type.h.
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

#include "base/element_type.h"

namespace hone::ir {

using hone::DType;
using hone::IsFloat;
using hone::IsInt;
using hone::IsSignedInt;
using hone::IsUnsignedInt;
using hone::Name;
using hone::ParseDType;
using hone::SizeOf;

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
