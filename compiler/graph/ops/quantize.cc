// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/quantize.h"

#include <algorithm>
#include <numeric>

#include "compiler/graph/ops/families.h"
#include "compiler/ir/numeric.h"
#include "fmt/format.h"

namespace hone::graph {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

Expr Saturate(DType dtype, Expr scaled, Expr zero_point) {
  const DType f32 = DType::kFloat32;
  const Expr lowest = Number(f32, static_cast<double>(ir::LowestInt(dtype)));
  const Expr highest = Number(f32, static_cast<double>(ir::HighestInt(dtype)));
  Expr value = MakeUnary(ir::UnaryOp::kRound, std::move(scaled)) + std::move(zero_point);
  return To(dtype, Min(Max(std::move(value), lowest), highest));
}

Expr Requantize(const OpArgs& args, const Requantization& inputs, Expr sum, const Expr& channel) {
  const DType f32 = DType::kFloat32;
  const Buffer& b_scale = args.inputs[inputs.b_scale];
  Exprs place(Rank(b_scale), Expr(0));
  for (size_t d = 0; d < place.size(); ++d) {
    if (b_scale->shape[d] != 1) place[d] = channel;
  }
  const Buffer& zero_point = args.inputs[inputs.y_zero_point];
  return RequantizeBy({.a_scale = To(f32, ReadScalar(args.inputs[inputs.a_scale])),
                       .b_scale = ReadAs(f32, b_scale, std::move(place)),
                       .y_scale = To(f32, ReadScalar(args.inputs[inputs.y_scale])),
                       .y_zero_point = To(f32, ReadScalar(zero_point))},
                      zero_point->dtype, std::move(sum));
}

Expr RequantizeBy(const RequantizationValues& values, DType out, Expr sum) {
  Expr scale = values.a_scale * values.b_scale / values.y_scale;
  return Saturate(out, To(DType::kFloat32, std::move(sum)) * scale, values.y_zero_point);
}

absl::Status CheckScalar(const OpArgs& args, size_t i) {
  if (!args.Has(i) || Product(args.inputs[i]->shape) != 1)
    return Malformed(fmt::format("input {} must be one number", i));
  return absl::OkStatus();
}

bool HasOffset(const OpArgs& args, size_t i) {
  if (!args.Has(i)) return false;
  const auto numbers = ConstantNumbers(args, i);
  return !numbers.ok() || std::any_of(numbers->begin(), numbers->end(), [](double x) { return x != 0; });
}

absl::Status CheckQuantizedOperands(const OpArgs& args, size_t a, size_t b, size_t a_zero_point, size_t b_zero_point) {
  for (auto [operand, zero_point] : {std::pair(a, a_zero_point), std::pair(b, b_zero_point)}) {
    const DType dtype = args.inputs[operand]->dtype;
    if (dtype != DType::kInt8 && dtype != DType::kUInt8) {
      return Malformed(fmt::format("input {} must be 8-bit integers, not {}", operand, ir::Name(dtype)));
    }
    if (args.Has(zero_point) && args.inputs[zero_point]->dtype != dtype) {
      return Malformed(fmt::format("the zero point (input {}) must be of the type of input {}", zero_point, operand));
    }
  }
  return absl::OkStatus();
}

void QuantizedRange(const OpArgs& args, size_t input, double* low, double* high) {
  const bool scale = ir::IsFloat(args.inputs[input]->dtype);
  *low = scale ? 0.01 : 0;
  *high = scale ? 0.1 : 16;
}

Exprs Granularity::Place(const Buffer& parameter, Indices i) const {
  if (Product(parameter->shape) == 1) return Exprs(Rank(parameter), Expr(0));
  if (block == 0) return {i[axis]};
  Exprs place(i.begin(), i.end());
  place[axis] = FloorDiv(i[axis], Expr(block));
  return place;
}

absl::StatusOr<Granularity> ReadGranularity(const OpArgs& args) {
  const Buffer& x = args.inputs[0];
  const Shape& scale = args.inputs[1]->shape;
  Granularity granularity;
  const bool scalars = args.Has(2) && Product(scale) == 1 && Product(args.inputs[2]->shape) == 1;
  if (args.Has(2) && !scalars && args.inputs[2]->shape != scale) {
    return Malformed("scale and zero point (inputs 1 and 2) differ in shape");
  }
  if (Product(scale) == 1) return granularity;
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", 1), Rank(x)));
  granularity.axis = static_cast<size_t>(axis);
  granularity.block = args.Int("block_size", 0);
  Shape expected = {x->shape[granularity.axis]};
  if (granularity.block != 0) {
    if (granularity.block < 0)
      return Malformed(fmt::format("attribute block_size is {}; it must not be negative", granularity.block));
    expected = x->shape;
    Size& extent = expected[granularity.axis];
    extent = CeilDiv(extent, granularity.block);
  }
  if (scale != expected) return Malformed("the shape of the scale (input 1) does not fit input 0 and the axis");
  return granularity;
}

namespace {

absl::Status CheckQuantizedType(DType dtype) {
  if (!ir::IsInt(dtype) || ir::SizeOf(dtype) > 2) {
    return Unsupported(
        fmt::format("quantization to {} is not supported; 8-bit and 16-bit integers are", ir::Name(dtype)));
  }
  return absl::OkStatus();
}

// scaled: an element, divided by its scale.
OpResult QuantizeElements(const OpArgs& args, StageBuilder& builder, Expr (*scaled)(Expr element, Expr scale)) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(Granularity granularity, ReadGranularity(args));
  DType dtype = DType::kUInt8;
  if (args.Has(2)) {
    dtype = args.inputs[2]->dtype;
  } else if (args.Int("output_dtype", 0) != 0) {
    HONE_ASSIGN_OR_RETURN(dtype, FromOnnxType(args.Int("output_dtype", 0)));
  }
  HONE_RETURN_IF_ERROR(CheckQuantizedType(dtype));
  const DType f32 = DType::kFloat32;
  if (args.Int("precision", 0) != 0) {
    HONE_ASSIGN_OR_RETURN(const DType precision, FromOnnxType(args.Int("precision", 0)));
    if (precision != f32) {
      return Unsupported(fmt::format("attribute precision is {}; only f32 is supported", ir::Name(precision)));
    }
  }
  return Buffers{builder.Compute("quantize", dtype, x->shape, [&](Indices i) {
    Expr scale = ReadAs(f32, args.inputs[1], granularity.Place(args.inputs[1], i));
    Expr zero_point = args.Has(2) ? ReadAs(f32, args.inputs[2], granularity.Place(args.inputs[2], i)) : Number(f32, 0);
    return Saturate(dtype, scaled(ReadAs(f32, x, Exprs(i.begin(), i.end())), scale), zero_point);
  })};
}

OpResult QuantizeLinear(const OpArgs& args, StageBuilder& builder) {
  return QuantizeElements(args, builder, [](Expr element, Expr scale) { return element / scale; });
}

// The reciprocal is computed once where the scale is one number.
OpResult QuantizeByReciprocal(const OpArgs& args, StageBuilder& builder) {
  return QuantizeElements(args, builder,
                          [](Expr element, Expr scale) { return element * (Number(DType::kFloat32, 1) / scale); });
}

// Constants of 8-bit and 4-bit floats are stored as f16 or f32 (small_types.h).
OpResult DequantizeLinear(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  const DType dtype = args.inputs[1]->dtype;
  if (!ir::IsFloat(dtype)) return Malformed("the scale (input 1) must be floats");
  if (args.Has(2) && args.inputs[2]->dtype != x->dtype)
    return Malformed("the zero point (input 2) must be of the type of input 0");
  HONE_ASSIGN_OR_RETURN(Granularity granularity, ReadGranularity(args));
  DType out = dtype;
  if (args.Int("output_dtype", 0) != 0) {
    HONE_ASSIGN_OR_RETURN(out, FromOnnxType(args.Int("output_dtype", 0)));
    if (!ir::IsFloat(out))
      return Malformed(fmt::format("attribute output_dtype is {}; it must be a float type", ir::Name(out)));
  }
  const DType wide = ComputeType(dtype);
  return Buffers{Map(builder, "dequantize", out, x->shape, [&](Indices i) {
    Expr value = ReadHere(x, i);
    if (args.Has(2) && ir::IsFloat(x->dtype)) {
      value = value - Read(args.inputs[2], granularity.Place(args.inputs[2], i));
    } else if (args.Has(2)) {
      const DType exact =
          ir::SizeOf(x->dtype) < 4 ? DType::kInt32 : DType::kInt64;  // holds the difference of two elements exactly
      value = To(exact, value) - ReadAs(exact, args.inputs[2], granularity.Place(args.inputs[2], i));
    }
    return To(wide, value) * Read(args.inputs[1], granularity.Place(args.inputs[1], i));
  })};
}

// Quantizes to u8 over the data's range, extended to include 0.
OpResult DynamicQuantizeLinear(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  if (x->dtype != DType::kFloat32) return Malformed("input 0 must be f32");
  const DType f32 = DType::kFloat32;
  Dims axes(Rank(x));
  std::iota(axes.begin(), axes.end(), 0);
  auto read = [&](Indices i) { return ReadHere(x, i); };
  Buffer highest = ReduceOver(builder, "max", f32, x->shape, axes, false, Reduction::kMax, read);
  Buffer lowest = ReduceOver(builder, "min", f32, x->shape, axes, false, Reduction::kMin, read);
  const Expr zero = Number(f32, 0);
  Buffer scale = builder.Compute("scale", f32, {}, [&](Indices) {
    return (Max(ReadScalar(highest), zero) - Min(ReadScalar(lowest), zero)) / Number(f32, 255);
  });
  Buffer zero_point = builder.Compute("zero_point", DType::kUInt8, {}, [&](Indices) {
    // If the scale is 0, all data is 0: every zero point is valid, but 0 / 0 must be avoided.
    Expr place = Negate(Min(ReadScalar(lowest), zero)) / ReadScalar(scale);
    return Saturate(DType::kUInt8, MakeSelect(Equals(ReadScalar(scale), zero), zero, place), zero);
  });
  Buffer y = builder.Compute("quantize", DType::kUInt8, x->shape, [&](Indices i) {
    Expr scaled = MakeSelect(Equals(ReadScalar(scale), zero), zero, read(i) / ReadScalar(scale));
    return Saturate(DType::kUInt8, scaled, To(f32, ReadScalar(zero_point)));
  });
  return Buffers{y, scale, zero_point};
}

void ScaleRange(const OpArgs&, size_t input, double* low, double* high) {
  if (input == 1) {
    *low = 0.01;
    *high = 0.1;
  } else if (input == 2) {
    *low = 0;
    *high = 16;
  }
}

constexpr OpFacts kScaled = {.axes = {AxisForm::kAxis, 1}, .floats_differ = true};
constexpr OpFacts kDequantizes = {.axes = {AxisForm::kAxis, 1}, .floats_differ = true, .fold_late = true};

constexpr OpDef kQuantizeOps[] = {
    {"DequantizeLinear", Checked<DequantizeLinear, 2, Elements::kNumber>, kDequantizes, ScaleRange},
    {"DynamicQuantizeLinear", Checked<DynamicQuantizeLinear, 1, Elements::kFloat>},
    {"QuantizeLinear", Checked<QuantizeLinear, 2, Elements::kNumber>, kScaled, ScaleRange},
};
constexpr OpDef kReciprocalOps[] = {
    {"QuantizeByReciprocal", Checked<QuantizeByReciprocal, 2, Elements::kNumber>, kScaled, ScaleRange},
};

}  // namespace

std::span<const OpDef> QuantizeOps() { return kQuantizeOps; }
std::span<const OpDef> ReciprocalOps() { return kReciprocalOps; }

}  // namespace hone::graph
