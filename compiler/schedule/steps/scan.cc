// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "compiler/schedule/apply.h"

namespace hone::schedule {
namespace {

// A reduction of the values up to each place of an axis: reduce over r of select(r <= p, value, identity).
struct Running {
  size_t axis;      // p, among the axes of the stage
  bool forward;     // values before the place count; else those behind it
  bool with_place;  // the value at the place counts, too
  ir::Expr value;   // in terms of r
};

// Reads "a < b" or "a <= b", also where it is written the other way round.
struct Below {
  ir::Expr a, b;
  bool or_equal;
};
std::optional<Below> FindBelow(const ir::Expr& condition) {
  const ir::Binary* b = condition.As<ir::Binary>();
  if (b == nullptr) return std::nullopt;
  switch (b->op) {
    case ir::BinaryOp::kLt:
      return Below{b->a, b->b, false};
    case ir::BinaryOp::kLe:
      return Below{b->a, b->b, true};
    case ir::BinaryOp::kGt:
      return Below{b->b, b->a, false};
    case ir::BinaryOp::kGe:
      return Below{b->b, b->a, true};
    default:
      return std::nullopt;
  }
}

std::optional<Running> FindRunning(const ir::Stage& stage) {
  const ir::Select* select = stage.value.As<ir::Select>();
  if (!ir::Folds(stage.reduction) || stage.reduce_axes.size() != 1 || select == nullptr) return std::nullopt;
  if (!ir::Equal(select->on_false, ir::Identity(stage.reduction, stage.value.type()))) return std::nullopt;
  const std::optional<Below> below = FindBelow(select->condition);
  if (!below.has_value()) return std::nullopt;
  const ir::Axis& r = stage.reduce_axes[0];
  for (const bool forward : {true, false}) {
    const ir::Var* step = (forward ? below->a : below->b).As<ir::Var>();
    const ir::Var* place = (forward ? below->b : below->a).As<ir::Var>();
    if (step == nullptr || place == nullptr || step->name != r.name) continue;
    const auto axis = std::ranges::find(stage.axes, place->name, &ir::Axis::name);
    if (axis == stage.axes.end() || axis->extent != r.extent || ir::UsesVar(select->on_true, place->name)) continue;
    return Running{static_cast<size_t>(axis - stage.axes.begin()), forward, below->or_equal, select->on_true};
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> RunningAxis(const ir::Stage& stage) {
  const std::optional<Running> running = FindRunning(stage);
  return running.has_value() ? std::optional(running->axis) : std::nullopt;
}

// t[p] = sum over r of select(r <= p, v(r), 0)  ==>  t[p] = select(p > 0, t[p - 1], 0) + v(p)
absl::Status Apply(const Scan& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (absl::Status status = CheckUnscheduled(state, *nest); !status.ok()) return status;
  ir::Stage& stage = nest->stage;
  const std::optional<Running> running = FindRunning(stage);
  if (!running.has_value()) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is not a reduction of the values up to each place of an axis", step.stage));
  }
  const ir::Axis &axis = stage.axes[running->axis], reduced = stage.reduce_axes[0];
  const ir::Expr place = ir::MakeVar(axis.name), last = ir::Expr(axis.extent) - ir::Expr(1);
  const ir::Expr before = running->forward ? place - ir::Expr(1) : place + ir::Expr(1);
  const ir::Expr has_before = running->forward ? place > ir::Expr(0) : place < last;
  std::vector<ir::Expr> indices = Vars(stage.axes);
  indices[running->axis] = before;
  const ir::Expr so_far = ir::MakeLoad(stage.buffer, std::move(indices));
  const ir::Expr identity = ir::Identity(stage.reduction, stage.value.type());
  const auto value_at = [&](const ir::Expr& at) { return ir::Substitute(running->value, {{reduced.name, at}}); };
  if (running->with_place) {
    stage.value = ir::Combine(stage.reduction, ir::MakeSelect(has_before, so_far, identity), value_at(place));
  } else {
    stage.value = ir::MakeSelect(has_before, ir::Combine(stage.reduction, so_far, value_at(before)), identity);
  }
  stage.reduction = ir::Reduction::kNone;
  stage.reduce_axes.clear();
  std::erase_if(nest->loops, [&](const Loop& loop) { return loop.name == reduced.name; });
  nest->bindings.erase(reduced.name);
  std::ranges::find(nest->loops, axis.name, &Loop::name)->reduce = true;
  if (!running->forward) nest->bindings[axis.name] = last - place;
  nest->has_loop_steps = true;
  return absl::OkStatus();
}

}  // namespace hone::schedule
