// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/softmax.h"

#include "compiler/graph/ops/families.h"
#include "fmt/format.h"

namespace hone::graph {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;
using ir::Reduction;

namespace {

// Since opset 13, softmax normalizes along one axis; before, the tensor was a matrix with its columns from `axis` on.
absl::StatusOr<Dims> SoftmaxAxes(const OpArgs& args) {
  const size_t rank = Rank(args.inputs[0]);
  const bool one = args.node.opset >= 13;
  if (rank == 0) return Malformed("input 0 is a scalar");
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", one ? -1 : 1), rank));
  Dims axes = {axis};
  while (!one && axes.back() + 1 < static_cast<int64_t>(rank)) axes.push_back(axes.back() + 1);
  return axes;
}

// The intermediate results shared by Softmax and LogSoftmax.
struct Shifted {
  Buffer top;  // the maximum; subtracting it keeps exp from overflowing
  Buffer exp;  // exp(x - top)
  Buffer sum;  // of exp
};

Shifted EmitShifted(StageBuilder& builder, const Buffer& x, const Dims& axes) {
  const DType wide = ComputeType(x->dtype);
  Shifted shifted;
  shifted.top = ReduceOver(builder, "max", wide, x->shape, axes, true, Reduction::kMax,
                           [&](Indices i) { return ReadHere(x, i); });
  shifted.exp = Map(builder, "exp", wide, x->shape,
                    [&](Indices i) { return Apply(Intrinsic::kExp, ReadHere(x, i) - ReadBroadcast(shifted.top, i)); });
  shifted.sum = ReduceOver(builder, "sum", wide, x->shape, axes, true, Reduction::kSum,
                           [&](Indices i) { return ReadHere(shifted.exp, i); });
  return shifted;
}

}  // namespace

Buffer EmitLogOfExpSum(StageBuilder& builder, const StageBuilder::Body& x, const Buffer& top, const Shape& shape,
                       const Dims& axes) {
  const DType wide = top->dtype;
  const auto sum = [&](std::string_view hint, const Expr& of_maximum, const std::function<Expr(Expr)>& of_others) {
    return ReduceOver(builder, hint, wide, shape, axes, true, Reduction::kSum, [&](Indices i) {
      const Expr value = x(i), maximum = ReadBroadcast(top, i);
      return MakeSelect(Equals(value, maximum), of_maximum, of_others(value - maximum));
    });
  };
  const Expr zero = Number(wide, 0);
  const Buffer count = sum("count", Number(wide, 1), [&](const Expr&) { return zero; });
  const Buffer rest = sum("rest", zero, [](Expr distance) { return Apply(Intrinsic::kExp, std::move(distance)); });
  return Map(builder, "log_sum", wide, count->shape, [&](Indices i) {
    const Expr all = ReadHere(count, i) + ReadHere(rest, i), lost = ReadHere(rest, i) - (all - ReadHere(count, i));
    const Expr nothing = ReadHere(top, i) - ReadHere(top, i);  // 0, or NaN if the maximum is infinite
    return Apply(Intrinsic::kLog, all) + lost / all + nothing;
  });
}

Buffer EmitLogSoftmax(StageBuilder& builder, const Buffer& x, const Dims& axes) {
  const auto read = [&](Indices i) { return ReadHere(x, i); };
  const Buffer top = ReduceOver(builder, "max", ComputeType(x->dtype), x->shape, axes, true, Reduction::kMax, read);
  const Buffer log_sum = EmitLogOfExpSum(builder, read, top, x->shape, axes);
  return Map(builder, "log_softmax", x->dtype, x->shape,
             [&](Indices i) { return read(i) - ReadBroadcast(top, i) - ReadBroadcast(log_sum, i); });
}

namespace {

OpResult Softmax(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(Dims axes, SoftmaxAxes(args));
  const Shifted shifted = EmitShifted(builder, x, axes);
  // One division per sum instead of one per element. A sum is at least 1, so its reciprocal does not overflow.
  const Expr one = Number(shifted.sum->dtype, 1);
  return Buffers{Map(builder, "softmax", x->dtype, x->shape,
                     [&](Indices i) { return ReadHere(shifted.exp, i) * (one / ReadBroadcast(shifted.sum, i)); })};
}

OpResult LogSoftmax(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Dims axes, SoftmaxAxes(args));
  return Buffers{EmitLogSoftmax(builder, args.inputs[0], axes)};
}

// 1 at the first maximum, 0 elsewhere.
OpResult Hardmax(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(Dims axes, SoftmaxAxes(args));
  const DType wide = ComputeType(x->dtype);
  auto read = [&](Indices i) { return ReadHere(x, i); };
  Buffer top = ReduceOver(builder, "max", wide, x->shape, axes, true, Reduction::kMax, read);
  Shape extents;
  for (int64_t axis : axes) extents.push_back(x->shape[static_cast<size_t>(axis)]);
  auto position = [&](Indices i) {
    Exprs along;
    for (int64_t axis : axes) along.push_back(i[static_cast<size_t>(axis)]);
    return Flatten(along, extents);
  };
  Buffer first = ReduceOver(builder, "first", DType::kInt64, x->shape, axes, true, Reduction::kMin, [&](Indices i) {
    return MakeSelect(read(i) < ReadBroadcast(top, i), Expr(Product(extents) - 1), position(i));
  });
  return Buffers{Map(builder, "hardmax", x->dtype, x->shape, [&](Indices i) {
    return MakeSelect(Equals(position(i), ReadBroadcast(first, i)), Number(wide, 1), Number(wide, 0));
  })};
}

constexpr OpDef kSoftmaxOps[] = {
    {"Hardmax", Checked<Hardmax, 1, Elements::kFloat>},
    {"LogSoftmax", Checked<LogSoftmax, 1, Elements::kFloat>, {.axes = {AxisForm::kAxis, -1, 13}}},
    {"Softmax", Checked<Softmax, 1, Elements::kFloat>, {.axes = {AxisForm::kAxis, -1, 13}}},
};

}  // namespace

std::span<const OpDef> SoftmaxOps() { return kSoftmaxOps; }

}  // namespace hone::graph
