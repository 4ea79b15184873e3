// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

OpResult Identity(const OpArgs& args, StageBuilder&) { return Buffers{args.inputs[0]}; }

OpResult CastTo(const OpArgs& args, StageBuilder& builder, DType dtype) {
  const Buffer& x = args.inputs[0];
  if (x->dtype == dtype) return Buffers{x};
  return Buffers{Map(builder, "cast", dtype, x->shape, [&](Indices i) { return ReadHere(x, i); })};
}

OpResult Cast(const OpArgs& args, StageBuilder& builder) {
  if (!HasAttribute(args, "to")) return Malformed("attribute to is missing");
  HONE_ASSIGN_OR_RETURN(DType dtype, FromOnnxType(args.Int("to", 0)));
  return CastTo(args, builder, dtype);
}

OpResult CastLike(const OpArgs& args, StageBuilder& builder) { return CastTo(args, builder, args.inputs[1]->dtype); }

// The same bits as another type of the same size. A bool is a byte of 0 or 1; any other byte becomes true.
OpResult BitCast(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const DType dtype, FromOnnxType(args.Int("to", 0)));
  const Buffer& x = args.inputs[0];
  if (ir::SizeOf(x->dtype) != ir::SizeOf(dtype)) {
    return Malformed(fmt::format("{} and {} (attribute to) have different sizes", ir::Name(x->dtype), ir::Name(dtype)));
  }
  if (x->dtype == DType::kBool || dtype == DType::kBool) return CastTo(args, builder, dtype);
  if (x->dtype == dtype) return Buffers{x};
  return Buffers{builder.Compute("bits", dtype, x->shape, [&](Indices i) {
    return ir::MakeCall({dtype, 1}, ir::Intrinsic::kReinterpret, {ir::MakeLoad(x, Exprs(i.begin(), i.end()))});
  })};
}

OpResult Where(const OpArgs& args, StageBuilder& builder) {
  const Buffer& condition = args.inputs[0];
  const Buffer& x = args.inputs[1];
  const Buffer& y = args.inputs[2];
  if (x->dtype != y->dtype) return Malformed("inputs 1 and 2 must be of one type");
  HONE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(x->shape, y->shape));
  HONE_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, condition->shape));
  return Buffers{Map(builder, "where", x->dtype, std::move(shape), [&](Indices i) {
    return MakeSelect(ReadBroadcast(condition, i), ReadBroadcast(x, i), ReadBroadcast(y, i));
  })};
}

// Opset 11 turned the two attributes into inputs.
OpResult Clip(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  for (size_t i : {1, 2}) {
    if (args.Has(i) && Product(args.inputs[i]->shape) != 1) {
      return Malformed(fmt::format("input {} must be one number", i));
    }
  }
  if (!args.Has(1) && !args.Has(2) && !HasAttribute(args, "min") && !HasAttribute(args, "max")) {
    return Buffers{args.inputs[0]};
  }
  return Buffers{MapInput(args, builder, [&](Expr x) {
    const DType dtype = x.type().dtype;
    if (args.Has(1)) {
      x = Max(x, ReadScalar(args.inputs[1]));
    } else if (HasAttribute(args, "min")) {
      x = Max(x, Number(dtype, args.Float("min", 0)));
    }
    if (args.Has(2)) return Min(x, ReadScalar(args.inputs[2]));
    if (HasAttribute(args, "max")) return Min(x, Number(dtype, args.Float("max", 0)));
    return x;
  })};
}

// Inference drops nothing. Before opset 10 the mask had the data's type.
OpResult Dropout(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  if (args.Has(2)) {
    HONE_ASSIGN_OR_RETURN(std::vector<double> training, ConstantNumbers(args, 2));
    double ratio = 0.5;
    if (args.Has(1)) {
      HONE_ASSIGN_OR_RETURN(std::vector<double> ratios, ConstantNumbers(args, 1));
      if (ratios.size() != 1) return Malformed("the ratio (input 1) must be one number");
      ratio = ratios[0];
    }
    if (!training.empty() && training[0] != 0 && ratio != 0) {
      return Unsupported("training_mode (input 2) is true; random dropout is not supported");
    }
  }
  Buffers outputs = {x};
  if (IsOutputUsed(args, 1)) {
    const DType dtype = args.node.opset >= 10 ? DType::kBool : x->dtype;
    outputs.push_back(Map(builder, "mask", dtype, x->shape, [&](Indices) { return Number(ComputeType(dtype), 1); }));
  }
  return outputs;
}

constexpr OpDef kCastOps[] = {
    {"BitCast", Checked<BitCast, 1>, kElementwise},
    {"Cast", Checked<Cast, 1>, kElementwise},
    {"CastLike", Checked<CastLike, 2>, kElementwise},
    {"Clip", Checked<Clip, 1, Elements::kNumber>, kElementwise},
    {"Dropout", Checked<Dropout, 1, Elements::kFloat>, {.axes = {AxisForm::kBroadcast}, .movement = Movement::kView}},
    {"Identity", Checked<Identity, 1>, {.axes = {AxisForm::kBroadcast}, .movement = Movement::kView}},
    {"Where", Checked<Where, 3, Elements::kBool>, kElementwise},
};

}  // namespace

std::span<const OpDef> CastOps() { return kCastOps; }

}  // namespace hone::graph
