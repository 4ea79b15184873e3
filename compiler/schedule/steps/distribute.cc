// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

// A factor of the form number - offset, whose offset is constant along the reduction.
struct Factor {
  ir::Expr number;
  ir::Expr offset;  // undefined: the factor has no offset
};

bool UsesAny(const ir::Expr& e, const std::vector<ir::Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](const ir::Axis& a) { return ir::UsesVar(e, a.name); });
}

Factor Decompose(const ir::Expr& e, const std::vector<ir::Axis>& reduced) {
  const ir::Binary* binary = e.As<ir::Binary>();
  const bool minus = binary != nullptr && binary->op == ir::BinaryOp::kSub;
  if (binary == nullptr || (binary->op != ir::BinaryOp::kAdd && !minus)) return {e, {}};
  const bool left = UsesAny(binary->a, reduced), right = UsesAny(binary->b, reduced);
  if (left == right || (right && minus)) return {e, {}};
  Factor factor = Decompose(left ? binary->a : binary->b, reduced);
  const ir::Expr& rest = left ? binary->b : binary->a;
  if (!factor.offset.defined()) {
    factor.offset = minus ? rest : ir::MakeUnary(ir::UnaryOp::kNeg, rest);
  } else {
    factor.offset = minus ? factor.offset + rest : factor.offset - rest;
  }
  return factor;
}

ir::Size Product(const std::vector<ir::Axis>& axes) {
  ir::Size product = 1;
  for (const ir::Axis& axis : axes) product *= axis.extent;
  return product;
}

// A new stage that sums one value over the reduction axes. It has only those outer axes on which the value depends.
struct Sum {
  ir::Stage stage;
  std::vector<ir::Expr> place;  // indices of its element, in terms of the axes of the original stage
  ir::Size times = 1;           // product of the reduction extents on which the value does not depend
};

Sum SumOf(const ir::Stage& whole, const ir::Expr& value, const std::string& suffix) {
  Sum sum;
  ir::VarMap map;
  ir::Shape shape;
  const auto take = [&](const ir::Axis& axis, std::vector<ir::Axis>* axes) {
    axes->push_back({axis.name + suffix, axis.extent});
    map[axis.name] = ir::MakeVar(axes->back().name);
  };
  for (const ir::Axis& axis : whole.axes) {
    if (!ir::UsesVar(value, axis.name)) continue;
    take(axis, &sum.stage.axes);
    shape.push_back(axis.extent);
    sum.place.push_back(ir::MakeVar(axis.name));
  }
  for (const ir::Axis& axis : whole.reduce_axes) {
    if (ir::UsesVar(value, axis.name)) {
      take(axis, &sum.stage.reduce_axes);
    } else {
      sum.times *= axis.extent;
    }
  }
  sum.stage.reduction = ir::Reduction::kSum;
  sum.stage.value = ir::Substitute(value, map);
  sum.stage.buffer = ir::MakeBuffer(whole.buffer->name + suffix, whole.buffer->dtype, std::move(shape));
  return sum;
}

ir::Expr Element(const Sum& sum) {
  const ir::Expr element = ir::MakeLoad(sum.stage.buffer, sum.place);
  return sum.times == 1 ? element : element * MakeInt(element.type(), sum.times);
}

// The stage that sums the plain products, with all axes of the original.
ir::Stage ProductsOf(const ir::Stage& whole, const ir::Expr& product) {
  ir::Stage stage;
  ir::VarMap map;
  const auto take = [&](const ir::Axis& axis) {
    map[axis.name] = ir::MakeVar(axis.name + "m");
    return ir::Axis{axis.name + "m", axis.extent};
  };
  for (const ir::Axis& axis : whole.axes) stage.axes.push_back(take(axis));
  for (const ir::Axis& axis : whole.reduce_axes) stage.reduce_axes.push_back(take(axis));
  stage.reduction = ir::Reduction::kSum;
  stage.value = ir::Substitute(product, map);
  stage.buffer = ir::MakeBuffer(whole.buffer->name + "m", whole.buffer->dtype, whole.buffer->shape);
  return stage;
}

absl::Status CheckDistribute(const Distribute& step, const State& state, const Nest& nest) {
  if (absl::Status status = CheckUnscheduled(state, nest); !status.ok()) return status;
  // Floats would round differently. With more than 2^31 reduction steps the correction would not fit an i32.
  if (nest.stage.reduction != ir::Reduction::kSum || !ir::IsInt(nest.stage.buffer->dtype) ||
      ir::SizeOf(nest.stage.buffer->dtype) < 4 || Product(nest.stage.reduce_axes).max() > INT32_MAX) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is not a sum of at most 2^31 - 1 integers of 32 or 64 bits", step.stage));
  }
  return absl::OkStatus();
}

Nest NestOf(const State& state, const ir::Stage& stage) {
  Nest nest = MakeNest(stage);
  nest.prepared = true;
  ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
    if (const ir::Load* load = e.As<ir::Load>()) nest.prepared = nest.prepared && IsFixed(state, load->buffer.get());
  });
  return nest;
}

}  // namespace

// t = sum (a - p) * (b - q)  ==>  tm = sum a * b; ta = sum a; tb = sum b; t = tm - q * ta - p * tb + count * p * q.
// A factor without an offset adds no term. The result is exact because integers wrap.
absl::Status Apply(const Distribute& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (absl::Status status = CheckDistribute(step, state, *nest); !status.ok()) return status;
  ir::Stage stage = nest->stage;
  const ir::Binary* product = stage.value.As<ir::Binary>();
  if (product == nullptr || product->op != ir::BinaryOp::kMul) {
    return absl::FailedPreconditionError(fmt::format("stage {} is not a sum of products", step.stage));
  }
  const Factor a = Decompose(product->a, stage.reduce_axes), b = Decompose(product->b, stage.reduce_axes);
  if (!a.offset.defined() && !b.offset.defined()) {
    return absl::FailedPreconditionError(fmt::format("stage {} has no factor of the form number - offset", step.stage));
  }
  std::vector<Nest> added;
  const ir::Stage products = ProductsOf(stage, a.number * b.number);
  added.push_back(NestOf(state, products));
  ir::Expr value = ir::MakeLoad(products.buffer, Vars(stage.axes));
  for (const auto& [number, offset, suffix] :
       {std::tuple(a.number, b.offset, "a"), std::tuple(b.number, a.offset, "b")}) {
    if (!offset.defined()) continue;
    const Sum sum = SumOf(stage, number, suffix);
    added.push_back(NestOf(state, sum.stage));
    value = value - offset * Element(sum);
  }
  if (a.offset.defined() && b.offset.defined()) {
    value = value + a.offset * b.offset * MakeInt(value.type(), Product(stage.reduce_axes));
  }
  stage.reduce_axes.clear();
  stage.reduction = ir::Reduction::kNone;
  stage.value = value;
  const auto place = nest - state.nests.data();
  *nest = MakeNest(std::move(stage));
  state.nests.insert(state.nests.begin() + place, added.begin(), added.end());
  return absl::OkStatus();
}

}  // namespace hone::schedule
