// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_small.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::DType;
using Attributes = std::map<std::string, Attribute>;

// Adds an operator, and computes it at once if its result is known and small.
absl::StatusOr<ValueId> Add(ImportGraph& at, std::string_view op, std::vector<ValueId> inputs,
                            Attributes attributes = {}, std::string_view domain = "") {
  HONE_ASSIGN_OR_RETURN(const ValueId result, AddOp(at.graph, op, std::move(inputs), std::move(attributes), domain));
  HONE_RETURN_IF_ERROR(at.Fold());
  return result;
}

absl::StatusOr<ValueId> AddCastTo(ImportGraph& at, ValueId value, DType dtype) {
  if (at.graph.values[value].type.dtype == dtype) return value;
  return Add(at, "Cast", {value}, {{"to", ToOnnxType(dtype)}});
}

ValueId IntConstant(ImportGraph& at, DType dtype, const std::vector<int32_t>& numbers, ir::Shape shape) {
  if (dtype == DType::kInt32) return AddConstant(at.graph, "small.number", dtype, std::move(shape), numbers);
  const std::vector<int16_t> narrow(numbers.begin(), numbers.end());
  return AddConstant(at.graph, "small.number", DType::kInt16, std::move(shape), narrow);
}

int64_t PerByte(const SmallType& small) { return 8 / small.bits; }

// A constant with the elements of every byte: [256], or [256, n] if n elements share a byte.
ValueId ByteTable(ImportGraph& at, const SmallType& small) {
  std::vector<std::byte> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<std::byte>(byte));
  ir::Shape shape = {256};
  if (small.bits < 8) shape.push_back(PerByte(small));
  return AddValue(at.graph, "small.table", {small.stored, std::move(shape)},
                  Unpack(small, bytes, 256 * PerByte(small)));
}

// Shortens a list to its first elements.
absl::StatusOr<ValueId> Head(ImportGraph& at, ValueId list, int64_t elements) {
  if (at.graph.values[list].type.elements() == ir::Size(elements)) return list;
  return AddSlice(at.graph, list, 0, 0, elements);
}

// The codes of elements, i32: their bits as a number from 0 on.
absl::StatusOr<ValueId> CodesOf(ImportGraph& at, const SmallType& small, ValueId value) {
  if (ir::IsFloat(small.stored)) {
    HONE_ASSIGN_OR_RETURN(const ValueId codes,
                          Add(at, "EncodeSmall", {value}, {{"type", small.onnx}, {"saturate", int64_t{0}}}, "hone"));
    return AddCastTo(at, codes, DType::kInt32);
  }
  HONE_ASSIGN_OR_RETURN(const ValueId wide, AddCastTo(at, value, DType::kInt32));
  return Add(at, "BitwiseAnd", {wide, IntConstant(at, DType::kInt32, {(1 << small.bits) - 1}, {})});
}

// Keeps the low bits of integers, as ONNX's Cast does with numbers beyond the range.
absl::StatusOr<ValueId> WrapInts(ImportGraph& at, const SmallType& small, ValueId value) {
  HONE_ASSIGN_OR_RETURN(const ValueId wide, AddCastTo(at, value, DType::kInt32));
  const int32_t range = 1 << small.bits;
  HONE_ASSIGN_OR_RETURN(ValueId low, Add(at, "BitwiseAnd", {wide, IntConstant(at, DType::kInt32, {range - 1}, {})}));
  if (ir::IsSignedInt(small.stored)) {
    const ValueId sign = IntConstant(at, DType::kInt32, {range / 2}, {});
    HONE_ASSIGN_OR_RETURN(low, Add(at, "BitwiseXor", {low, sign}));
    HONE_ASSIGN_OR_RETURN(low, Add(at, "Sub", {low, sign}));
  }
  return AddCastTo(at, low, small.stored);
}

// The elements that have these codes.
absl::StatusOr<ValueId> DecodeFloats(ImportGraph& at, const SmallType& small, ValueId codes) {
  SmallType in_bytes = small;
  std::vector<std::byte> packed;  // each code alone, in the low bits of a byte
  for (int code = 0; code < (1 << small.bits); ++code) packed.push_back(static_cast<std::byte>(code));
  std::vector<std::byte> table;
  const auto size = static_cast<size_t>(ir::SizeOf(small.stored));
  for (const std::byte code : packed) {
    const TensorData element = Unpack(in_bytes, {&code, 1}, 1);
    table.insert(table.end(), element->begin(), element->begin() + static_cast<std::ptrdiff_t>(size));
  }
  const ValueId values = AddValue(at.graph, "small.table", {small.stored, {ir::Size(1 << small.bits)}},
                                  std::make_shared<const std::vector<std::byte>>(std::move(table)));
  return Add(at, "Gather", {values, codes}, {{"axis", int64_t{0}}});
}

absl::StatusOr<ValueId> Marked(ImportGraph& at, const SmallType& small, absl::StatusOr<ValueId> value) {
  if (value.ok()) at.small[*value] = &small;
  return value;
}

// How floats become those of a small type, as the attributes of Cast and QuantizeLinear say.
struct SmallRounding {
  bool saturate = true;           // numbers beyond the largest are the largest; else NaN or infinity
  std::string round_mode = "up";  // for powers of two (float8e8m0): up, down or nearest
};

SmallRounding RoundingOf(const Node& node) {
  return {IntAttribute(node, "saturate", 1) != 0, StringAttribute(node, "round_mode", "up")};
}

absl::StatusOr<ValueId> ConvertToSmall(ImportGraph& at, const SmallType& small, ValueId value,
                                       const SmallRounding& rounding) {
  if (const auto known = at.small.find(value); known != at.small.end() && known->second == &small) return value;
  if (!ir::IsFloat(small.stored)) return Marked(at, small, WrapInts(at, small, value));
  HONE_ASSIGN_OR_RETURN(
      ValueId codes,
      Add(at, "EncodeSmall", {value},
          {{"type", small.onnx}, {"saturate", int64_t{rounding.saturate ? 1 : 0}}, {"round_mode", rounding.round_mode}},
          "hone"));
  HONE_ASSIGN_OR_RETURN(codes, AddCastTo(at, codes, DType::kInt32));
  return Marked(at, small, DecodeFloats(at, small, codes));
}

absl::StatusOr<ValueId> QuantizeToSmall(ImportGraph& at, const SmallType& small, const Node& node) {
  Attributes attributes = node.attributes;
  attributes.erase("output_dtype");
  const SmallRounding rounding = RoundingOf(node);
  attributes.erase("saturate");
  std::vector<ValueId> inputs = node.inputs;
  if (ir::IsFloat(small.stored)) {
    HONE_ASSIGN_OR_RETURN(const ValueId scaled, Add(at, "ScaleDown", inputs, std::move(attributes), "hone"));
    return ConvertToSmall(at, small, scaled, rounding);
  }
  // 16 bits hold the saturated result, so that saturating again gives the same.
  if (HasInput(node, 2)) {
    HONE_ASSIGN_OR_RETURN(inputs[2], AddCastTo(at, inputs[2], DType::kInt16));
  } else {
    attributes["output_dtype"] = ToOnnxType(DType::kInt16);
  }
  Node wide = {.name = node.name, .op = "QuantizeLinear", .opset = node.opset, .inputs = inputs};
  wide.outputs = {kNewValue};
  wide.attributes = std::move(attributes);
  HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, AddNode(at.graph, std::move(wide)));
  HONE_RETURN_IF_ERROR(at.Fold());
  const bool is_signed = ir::IsSignedInt(small.stored);
  const int32_t range = 1 << small.bits, low = is_signed ? -range / 2 : 0, high = low + range - 1;
  HONE_ASSIGN_OR_RETURN(ValueId result, Add(at, "Max", {outputs[0], IntConstant(at, DType::kInt16, {low}, {})}));
  HONE_ASSIGN_OR_RETURN(result, Add(at, "Min", {result, IntConstant(at, DType::kInt16, {high}, {})}));
  return Marked(at, small, AddCastTo(at, result, small.stored));
}

}  // namespace

absl::StatusOr<TensorType> PortTypeOf(const SmallType& small, const ir::Shape& shape) {
  if (small.bits == 8) return TensorType{DType::kUInt8, shape};
  if (!ir::IsFixed(shape)) {
    return absl::UnimplementedError(fmt::format(
        "elements of type {} share bytes, so the dimensions must be numbers; give them with --shape", small.name));
  }
  const int64_t elements = ir::Product(shape).value();
  return TensorType{DType::kUInt8, {ir::Size(PackedBytes(small, elements))}};
}

absl::StatusOr<ValueId> UnpackInput(ImportGraph& at, const SmallType& small, ValueId bytes, const ir::Shape& shape) {
  HONE_ASSIGN_OR_RETURN(const ValueId places, AddCastTo(at, bytes, DType::kInt32));
  HONE_ASSIGN_OR_RETURN(ValueId value, Add(at, "Gather", {ByteTable(at, small), places}, {{"axis", int64_t{0}}}));
  if (small.bits < 8) {
    const int64_t elements = ir::Product(shape).value();
    HONE_ASSIGN_OR_RETURN(value,
                          AddReshape(at.graph, value, {ir::Size(PackedBytes(small, elements) * PerByte(small))}));
    HONE_ASSIGN_OR_RETURN(value, Head(at, value, elements));
    HONE_ASSIGN_OR_RETURN(value, AddReshape(at.graph, value, shape));
  }
  return Marked(at, small, value);
}

absl::StatusOr<ValueId> PackOutput(ImportGraph& at, const SmallType& small, ValueId value) {
  const ir::Shape shape = at.graph.values[value].type.shape;
  HONE_ASSIGN_OR_RETURN(const TensorType port, PortTypeOf(small, shape));
  HONE_ASSIGN_OR_RETURN(ValueId codes, CodesOf(at, small, value));
  if (small.bits == 8) return AddCastTo(at, codes, DType::kUInt8);
  const int64_t elements = ir::Product(shape).value(), bytes = port.shape[0].value(), per_byte = PerByte(small);
  HONE_ASSIGN_OR_RETURN(codes, AddReshape(at.graph, codes, {ir::Size(elements)}));
  if (const int64_t missing = bytes * per_byte - elements; missing > 0) {
    const std::vector<int32_t> zeros(static_cast<size_t>(missing), 0);
    HONE_ASSIGN_OR_RETURN(codes, Add(at, "Concat", {codes, IntConstant(at, DType::kInt32, zeros, {ir::Size(missing)})},
                                     {{"axis", int64_t{0}}}));
  }
  HONE_ASSIGN_OR_RETURN(codes, AddReshape(at.graph, codes, {ir::Size(bytes), ir::Size(per_byte)}));
  std::vector<int32_t> weights;
  for (int64_t i = 0; i < per_byte; ++i) weights.push_back(1 << (i * small.bits));
  HONE_ASSIGN_OR_RETURN(codes, Add(at, "Mul", {codes, IntConstant(at, DType::kInt32, weights, {ir::Size(per_byte)})}));
  HONE_ASSIGN_OR_RETURN(
      codes, Add(at, "ReduceSum", {codes, AddInts(at.graph, "small.axis", {1})}, {{"keepdims", int64_t{0}}}));
  return AddCastTo(at, codes, DType::kUInt8);
}

const SmallType* SmallTypeMadeBy(const ImportGraph& at, const Node& node) {
  const auto type_of = [&](size_t input) -> const SmallType* {
    const auto known = HasInput(node, input) ? at.small.find(node.inputs[input]) : at.small.end();
    return known == at.small.end() ? nullptr : known->second;
  };
  if (Is(node, "Cast")) return FindSmallType(IntAttribute(node, "to", 0));
  if (Is(node, "CastLike")) return type_of(1);
  if (!Is(node, "QuantizeLinear")) return nullptr;
  return HasInput(node, 2) ? type_of(2) : FindSmallType(IntAttribute(node, "output_dtype", 0));
}

absl::StatusOr<ValueId> AddMakerOfSmall(ImportGraph& at, const SmallType& small, const Node& node) {
  if (Is(node, "QuantizeLinear")) return QuantizeToSmall(at, small, node);
  return ConvertToSmall(at, small, node.inputs[0], RoundingOf(node));
}

}  // namespace hone::graph
