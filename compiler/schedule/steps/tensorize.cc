// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/instruction.h"

namespace hone::schedule {
namespace {

// A stage whose value is select(condition && ..., x, 0), so that it is 0 wherever the condition fails.
struct ZeroPadding {
  Nest* source;
  ir::Expr condition;  // in terms of the axes of source
};

// The source of the load, if its elements are 0 wherever the guard fails; else empty.
std::optional<ZeroPadding> FindZeroPadding(State& state, const Nest& nest, const ir::Load& load,
                                           const ir::Expr& guard) {
  const ir::Ranges ranges = state.LoopRanges();
  Nest* source = state.FindNest(load.buffer->name);
  const ir::Select* select = source == nullptr ? nullptr : source->stage.value.As<ir::Select>();
  if (select == nullptr || source->stage.reduction != ir::Reduction::kNone || !ir::IsZero(select->on_false)) return {};
  ir::VarMap map;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    map[source->stage.axes[d].name] = ir::Substitute(load.indices[d], nest.bindings);
  }
  std::vector<ir::Expr> conditions;
  CollectConditions(select->condition, &conditions);
  const ir::Expr wanted = ir::Simplify(guard, ranges);
  const auto found = std::ranges::find_if(
      conditions, [&](const ir::Expr& c) { return ir::Equal(ir::Simplify(ir::Substitute(c, map), ranges), wanted); });
  return found == conditions.end() ? std::nullopt : std::optional(ZeroPadding{source, *found});
}

// Removes guards on the instruction's loops. An instruction always does all its steps, so such a guard is only legal if
// the steps beyond it add 0.
absl::Status RemoveGuards(State& state, const Factors& factors, Nest& nest, const InstructionLoops& loops) {
  std::vector<ir::Expr> kept;
  std::vector<ZeroPadding> needed;
  for (const ir::Expr& guard : nest.conditions.guards) {
    const auto uses = [&](const std::string& loop) { return !loop.empty() && ir::UsesVar(guard, loop); };
    if (!uses(loops.m) && !uses(loops.n) && !uses(loops.chunks) && !uses(loops.k)) {
      kept.push_back(guard);
      continue;
    }
    std::optional<ZeroPadding> zeros = FindZeroPadding(state, nest, factors.a, guard);
    if (!zeros.has_value()) zeros = FindZeroPadding(state, nest, factors.b, guard);
    if (uses(loops.m) || uses(loops.n) || !zeros.has_value()) {
      return absl::FailedPreconditionError(
          "a condition holds for only a part of the instruction: pad an operand with zeros, by packing it");
    }
    for (const ir::Load* load : {&factors.a, &factors.b}) {
      if (IsLoadInBounds(state, nest, *load)) continue;
      return absl::FailedPreconditionError(fmt::format(
          "the instruction would read {} beyond its end: pack it, and place it afterwards", load->buffer->name));
    }
    needed.push_back(*std::move(zeros));
  }
  // The zeros beyond these conditions are read from here on, so the conditions are no tail guards any more.
  for (const auto& [source, condition] : needed) {
    std::erase_if(source->conditions.tail_guards, [&](const ir::Expr& end) { return ir::Equal(end, condition); });
  }
  nest.conditions.guards = std::move(kept);
  return absl::OkStatus();
}

absl::Status CheckLoop(const Nest& nest, size_t position, int64_t extent, bool reduce, bool may_be_shorter) {
  const Loop& loop = nest.loops[position];
  if (loop.kind != ir::LoopKind::kSerial) {
    return absl::FailedPreconditionError(fmt::format("loop {} is annotated already", loop.name));
  }
  // Without chunks the reduction loop may be shorter than the instruction; the missing steps must then read zeros.
  const bool fits = may_be_shorter ? loop.max_extent <= extent : loop.max_extent == extent;
  if (loop.reduce != reduce || loop.extent.As<ir::IntImm>() == nullptr || !fits) {
    return absl::FailedPreconditionError(
        fmt::format("loop {} does not fit the instruction, which needs {} iterations {}", loop.name, extent,
                    reduce ? "of a reduction" : "outside a reduction"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Apply(const Tensorize& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  const ir::TensorInstructionEntry& entry = ir::EntryOf(step.instruction);
  if (nest->instruction.has_value()) {
    return absl::FailedPreconditionError(fmt::format("stage {} is tensorized already", step.stage));
  }
  if (nest->stage.reduction != ir::Reduction::kSum || nest->stage.buffer->dtype != entry.sum) {
    return absl::FailedPreconditionError(fmt::format("stage {} is not a sum of {}", step.stage, ir::Name(entry.sum)));
  }
  HONE_ASSIGN_OR_RETURN(const Factors factors, FindFactors(nest->stage.value, entry));
  size_t position = nest->loops.size();
  for (const RequiredLoop& loop : RequiredLoops(entry)) {
    if (loop.extent == 1) continue;
    if (position == 0)
      return absl::FailedPreconditionError(fmt::format("stage {} has too few loops for the instruction", step.stage));
    HONE_RETURN_IF_ERROR(CheckLoop(*nest, --position, loop.extent, loop.reduce, loop.reduce && entry.chunk <= 1));
  }
  HONE_RETURN_IF_ERROR(CheckNoStageAtLoop(state, *nest, position));
  if (entry.chunk <= 1 && entry.k > 1 && nest->loops.back().max_extent < entry.k) {
    Loop& loop = nest->loops.back();
    nest->conditions.guards.push_back(ir::MakeVar(loop.name) < loop.extent);
    loop.extent = ir::Expr(entry.k);
    loop.max_extent = entry.k;
  }
  HONE_RETURN_IF_ERROR(RemoveGuards(state, factors, *nest, LoopsOf(*nest, entry)));
  nest->instruction = step.instruction;
  nest->has_loop_steps = true;
  return absl::OkStatus();
}

}  // namespace hone::schedule
