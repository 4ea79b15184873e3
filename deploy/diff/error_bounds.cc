// SPDX-License-Identifier: Apache-2.0
#include "deploy/diff/error_bounds.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/match.h"
#include "compiler/ir/workload.h"

namespace hone::diff {
namespace {

// How a tensor was computed from known ones.
struct Computation {
  double terms = 1;       // of the longest sum
  double unit = 0;        // the largest relative error of rounding to a type on the way
  bool computes = false;  // with floats, more than copies
  bool rounds = false;    // a computed float becomes an integer on the way

  void Add(const Computation& other) {
    terms = std::max(terms, other.terms);
    unit = std::max(unit, other.unit);
    computes |= other.computes;
    rounds |= other.rounds;
  }
};

double UnitOf(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBFloat16:
      return 0x1p-8;
    case ir::DType::kFloat16:
      return 0x1p-11;
    case ir::DType::kFloat32:
      return 0x1p-24;
    case ir::DType::kFloat64:
      return 0x1p-53;
    default:
      return 0;
  }
}

// Whether the value has arithmetic on floats; copies and casts are none.
bool Computes(const ir::Expr& value) {
  if (value.As<ir::Load>() != nullptr) return false;
  const bool arithmetic =
      value.As<ir::Unary>() != nullptr || value.As<ir::Binary>() != nullptr || value.As<ir::Call>() != nullptr;
  if (arithmetic && ir::IsFloat(value.type().dtype)) return true;
  bool found = false;
  ir::ForEachChild(value, [&](const ir::Expr& child) { found = found || Computes(child); });
  return found;
}

bool CastsToInteger(const ir::Expr& value) {
  if (value.As<ir::Load>() != nullptr) return false;
  const auto* cast = value.As<ir::Cast>();
  if (cast != nullptr && ir::IsInt(value.type().dtype) && ir::IsFloat(cast->value.type().dtype)) return true;
  bool found = false;
  ir::ForEachChild(value, [&](const ir::Expr& child) { found = found || CastsToInteger(child); });
  return found;
}

// What a call does to what its arguments are.
Computation Through(const ir::Workload& workload, Computation inputs) {
  for (const ir::Stage& stage : workload.stages) {
    double terms = 1;
    for (const ir::Axis& axis : stage.reduce_axes) terms *= static_cast<double>(axis.extent.max());
    const bool adds = stage.reduction == ir::Reduction::kSum || stage.reduction == ir::Reduction::kProd;
    inputs.terms = std::max(inputs.terms, terms);
    inputs.unit = std::max(inputs.unit, UnitOf(stage.buffer->dtype));
    inputs.computes |= Computes(stage.value) || (adds && ir::IsFloat(stage.buffer->dtype));
    inputs.rounds |= inputs.computes && CastsToInteger(stage.value);
  }
  return inputs;
}

// What a rounded integer may change in the floats that follow from it: a step of 8 bits.
constexpr double kStepOfIntegers = 1.0 / 64;

Tolerance ToleranceOf(const Computation& made, ir::DType dtype, bool rounds_factors) {
  if (dtype == ir::DType::kBool) return {};
  if (!ir::IsFloat(dtype)) return {.steps = made.rounds ? 1 : 0};
  if (made.unit == UnitOf(ir::DType::kFloat64)) {
    return {.relative = 1e-9, .absolute = std::clamp(1e-12 * std::sqrt(made.terms), 1e-11, 1e-9)};
  }
  const double rounding = 16 * (made.unit > UnitOf(ir::DType::kFloat32) ? made.unit : 0);
  Tolerance tolerance = {.relative = std::max(1e-3, rounding),
                         .absolute = std::max(std::clamp(1e-6 * std::sqrt(made.terms), 1e-5, 1e-3), rounding / 4)};
  if (rounds_factors) tolerance.absolute = std::max(tolerance.absolute, 1e-3);
  if (made.rounds) tolerance.absolute = std::max(tolerance.absolute, kStepOfIntegers);
  return tolerance;
}

}  // namespace

std::vector<Tolerance> ErrorBounds(const graph::Plan& plan, const std::set<graph::TensorId>& known,
                                   bool rounds_factors) {
  std::vector<Computation> made(plan.tensors.size());  // of tensors without alias_of
  std::vector<Tolerance> bounds(plan.tensors.size());
  for (const graph::PlanCall& call : plan.calls) {
    Computation result;
    for (const graph::TensorId input : plan.InputsOf(call)) {
      if (!known.contains(plan.Root(input))) result.Add(made[plan.Root(input)]);
    }
    if (call.foreign < 0) result = Through(plan.workloads[call.workload], result);
    for (const graph::TensorId output : plan.OutputsOf(call)) {
      const graph::TensorId id = plan.Root(output);
      made[id].Add(result);
      bounds[id] = ToleranceOf(made[id], plan.tensors[id].type.dtype, rounds_factors);
    }
  }
  for (size_t id = 0; id < bounds.size(); ++id) bounds[id] = bounds[plan.Root(static_cast<graph::TensorId>(id))];
  return bounds;
}

}  // namespace hone::diff
