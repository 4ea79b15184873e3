// SPDX-License-Identifier: Apache-2.0
// Element types of ONNX that Hone has no type for: floats of 8 and 4 bits and integers of 4 and 2 bits.
//
// They are for storage: constants, inputs and outputs may have them, and operators that convert numbers make and read
// them. Inside a program, elements are unpacked into a type that has all their values. The importer remembers the small
// type of such values (import_small.h), because an operator that chooses its result by the type of an input
// (QuantizeLinear) would take the wrong one. Start with FindSmallType.
#ifndef HONE_COMPILER_GRAPH_SMALL_TYPES_H_
#define HONE_COMPILER_GRAPH_SMALL_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

struct SmallType {
  int64_t onnx;  // TensorProto.DataType
  std::string_view name;
  int bits;          // of an element; several elements share a byte, the first in its low bits
  ir::DType stored;  // the type of the unpacked elements
};

// A float of a sign, an exponent and a mantissa.
struct SmallFloat {
  int64_t onnx;
  int exponent_bits, mantissa_bits, bias;
  // Codes without the sign: of the largest number; of what is larger and not saturated; of NaN.
  int largest, overflow, nan;
  bool has_negative_zero;
};

// Returns nullptr if the type of TensorProto.DataType is none of them.
const SmallType* FindSmallType(int64_t onnx_type);

// Returns nullptr for integers and for float8e8m0, which is a power of two.
const SmallFloat* FindSmallFloat(const SmallType& type);

// The size of packed elements. The last byte may be used in part.
int64_t PackedBytes(const SmallType& type, int64_t elements);
// Unpacks PackedBytes(type, elements) bytes into elements of type.stored.
TensorData Unpack(const SmallType& type, std::span<const std::byte> packed, int64_t elements);

// Returns true if the operator may read unpacked elements at this input: it converts their numbers or moves them.
// QuantizeLinear reads them as zero points only together with a result of their type.
bool MayReadSmall(const Node& node, size_t input);
// Returns true if results of the operator are elements of its inputs, so that they have the small type of the inputs.
bool KeepsSmall(const Node& node);

// Unimplemented: `what`, a part of a model, has elements of this type where it may not.
absl::Status SmallTypeError(std::string_view what, const SmallType& type);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_SMALL_TYPES_H_
