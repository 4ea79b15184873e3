// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/copy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/multiple.h"
#include "compiler/ir/op_names.h"
#include "compiler/schedule/grid.h"

namespace hone::schedule {
namespace {

// A value that a copy can move: a load, or select(condition, load, 0).
struct CopiedValue {
  ir::Expr load, condition;
};
absl::StatusOr<CopiedValue> FindCopiedValue(const Nest& nest) {
  CopiedValue moved{ir::Substitute(nest.stage.value, nest.bindings), {}};
  while (const ir::Select* select = moved.load.As<ir::Select>()) {
    if (!ir::IsZero(select->on_false) || ir::HasLoad(select->condition)) break;
    moved.condition = moved.condition.defined() ? moved.condition && select->condition : select->condition;
    moved.load = select->on_true;
  }
  if (nest.stage.reduction == ir::Reduction::kNone && moved.load.As<ir::Load>() != nullptr) return moved;
  return absl::FailedPreconditionError(
      fmt::format("stage {} computes its elements; an asynchronous copy can only move loaded elements or write zeros",
                  nest.stage.buffer->name));
}

// Whether each iteration of the loop reads the element directly after that of the iteration before.
bool IsContiguousAlong(const ir::Load& load, const std::string& loop, const ir::Ranges& ranges) {
  ir::Linear place = LinearPlaceOf(load, ranges);
  int64_t step = 0;
  place = ir::ToLinear(ir::FromLinear(place), ranges);  // indices of a fused loop have a quotient in one dimension and
                                                        // a remainder in another, which cancel here
  for (const auto& [atom, factor] : place.terms) {
    if (!ir::UsesVar(atom, loop)) continue;
    if (atom.As<ir::Var>() == nullptr) return false;
    step += factor;
  }
  return step == 1;
}

// The load of the first of `count` contiguous elements. Its address must be a multiple of their size, or of
// kBulkCopyAlignmentBytes for a bulk copy.
absl::StatusOr<ir::Expr> FirstElement(const ir::Expr& e, const std::string& loop, int64_t count,
                                      const ir::Ranges& ranges) {
  const ir::Load* load = e.As<ir::Load>();
  const std::string& name = load->buffer->name;
  if (!loop.empty() && !IsContiguousAlong(*load, loop, ranges)) {
    return absl::FailedPreconditionError(
        fmt::format("the elements that loop {} accesses in {} are not contiguous", loop, name));
  }
  std::vector<ir::Expr> indices = load->indices;
  for (ir::Expr& index : indices) {
    if (!loop.empty()) index = ir::Substitute(index, {{loop, ir::Expr(0)}});
    index = ir::Simplify(index, ranges);
  }
  const int64_t aligned = std::min(count, ir::kBulkCopyAlignmentBytes / ir::SizeOf(load->buffer->dtype));
  if (ir::IsMultipleOf(*load->buffer, indices, aligned)) return ir::MakeLoad(load->buffer, std::move(indices));
  return absl::FailedPreconditionError(
      fmt::format("a copy of {} elements of {} is not known to be aligned to {} elements: copy fewer at once", count,
                  name, aligned));
}

// The innermost pipelined loop around loop `position` of the nest. Only its copies are in flight when that loop begins,
// because it waits for the copies of pipelines further out. Null if there is none, or if a loop in between waits for
// all.
const Loop* PipelineAround(const State& state, const Nest& nest, size_t position) {
  for (const Nest* inside = &nest;;) {
    while (position-- > 0) {
      const Loop& loop = inside->loops[position];
      if (loop.buffers > 1) return &loop;
      const bool waits = std::ranges::any_of(state.nests, [&](const Nest& other) {
        return other.copy.elements > 0 && other.place.stage == inside->stage.buffer->name &&
               other.place.loop == loop.name;
      });
      if (waits) return nullptr;
    }
    if (inside->IsTopLevel()) return nullptr;
    const std::string& loop = inside->place.loop;
    inside = state.FindNest(inside->place.stage);
    position = static_cast<size_t>(std::ranges::find(inside->loops, loop, &Loop::name) - inside->loops.begin()) + 1;
  }
}

}  // namespace

bool HasBulkCopies(const State& state, const Nest& nest) {
  const Nest* const root = &TopLevelNestOf(state, nest);
  return std::ranges::any_of(
      state.nests, [&](const Nest& other) { return other.IsBulkCopied() && &TopLevelNestOf(state, other) == root; });
}

absl::Status CheckCommitGroups(const State& state) {
  const auto ahead = [](const Loop& loop) { return loop.buffers - 1 - loop.async_iterations; };
  for (const Nest& nest : state.nests) {
    for (size_t i = 0; i < nest.loops.size(); ++i) {
      const Loop& loop = nest.loops[i];
      const Loop* const around = loop.buffers > 1 ? PipelineAround(state, nest, i) : nullptr;
      if (around == nullptr || ahead(*around) + ahead(loop) <= ir::kCommitGroupsMax || !HasBulkCopies(state, nest))
        continue;
      return absl::FailedPreconditionError(
          fmt::format("the pipelines of loops {} and {} have {} commit groups in flight; bulk copies allow up to {}",
                      around->name, loop.name, ahead(*around) + ahead(loop), ir::kCommitGroupsMax));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::Expr> HoistCondition(const ir::Expr& condition, const std::string& loop, int64_t count,
                                        const ir::Ranges& ranges) {
  if (loop.empty() || !ir::UsesVar(condition, loop)) return condition;
  const ir::Binary* binary = condition.As<ir::Binary>();
  if (binary != nullptr && binary->op == ir::BinaryOp::kAnd) {
    HONE_ASSIGN_OR_RETURN(const ir::Expr a, HoistCondition(binary->a, loop, count, ranges));
    HONE_ASSIGN_OR_RETURN(const ir::Expr b, HoistCondition(binary->b, loop, count, ranges));
    return a && b;
  }
  const auto differs = [&] {
    return absl::FailedPreconditionError(
        fmt::format("a condition holds for only some of the {} elements of one copy: copy fewer at once", count));
  };
  if (binary == nullptr || binary->a.type() != ir::kIndexType) return differs();
  // For 0 <= i < count, count * q + i < 0 is equivalent to q < 0.
  const bool strict = binary->op == ir::BinaryOp::kLt || binary->op == ir::BinaryOp::kGe;
  const bool other = binary->op == ir::BinaryOp::kLe || binary->op == ir::BinaryOp::kGt;
  if (!strict && !other) return differs();
  const ir::Expr difference = ir::Simplify(binary->a - binary->b - ir::Expr(strict ? 0 : 1), ranges);
  const auto slope =
      ir::ConstantValue(ir::Substitute(difference, {{loop, ir::MakeVar(loop) + ir::Expr(1)}}) - difference, ranges);
  const ir::VarMap first = {{loop, ir::Expr(0)}};
  if (slope != 1 || !ir::IsMultipleOf(ir::Simplify(ir::Substitute(difference, first), ranges), count)) return differs();
  return ir::Substitute(condition, first);
}

absl::StatusOr<ir::Stmt> BuildCopy(const State& state, const Nest& nest, const ir::Buffer& storage,
                                   const std::function<ir::Expr(const ir::Expr&)>& load) {
  const ir::Ranges ranges = state.LoopRanges();
  const std::string loop = nest.copy.elements > 1 ? nest.loops.back().name : "";
  HONE_ASSIGN_OR_RETURN(CopiedValue moved, FindCopiedValue(nest));
  moved.load = load(moved.load);
  if (nest.IsBulkCopied() && moved.condition.defined()) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is zero where a condition does not hold; a bulk copy cannot have a condition",
                    nest.stage.buffer->name));
  }
  const ir::BufferNode& source = *moved.load.As<ir::Load>()->buffer;
  if (ir::IsShared(source.scope) || source.scope == ir::Scope::kLocal) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} reads {} memory of {}; a copy must read a parameter or the workspace",
                    nest.stage.buffer->name, ir::Name(source.scope), source.name));
  }
  std::vector<ir::Expr> axes;
  for (const ir::Axis& axis : nest.stage.axes) axes.push_back(nest.bindings.at(axis.name));
  const ir::Expr place = ir::MakeLoad(storage, StoredIndices(state, nest, std::move(axes)));
  HONE_ASSIGN_OR_RETURN(const ir::Expr to, FirstElement(place, loop, nest.copy.elements, ranges));
  HONE_ASSIGN_OR_RETURN(const ir::Expr from, FirstElement(moved.load, loop, nest.copy.elements, ranges));
  if (moved.condition.defined()) {
    HONE_ASSIGN_OR_RETURN(moved.condition, HoistCondition(moved.condition, loop, nest.copy.elements, ranges));
  }
  return ir::MakeCopy(storage, to.As<ir::Load>()->indices, from, moved.condition, nest.copy.elements, nest.copy.groups);
}

absl::Status CheckCopy(const State& state, const Nest& nest) {
  const ir::Buffer& stage = nest.stage.buffer;
  const ir::Buffer storage = ir::MakeBuffer(stage->name, stage->dtype, StoredShape(state, nest), ir::Scope::kShared);
  const auto stored = [&](const ir::Expr& e) {
    const ir::Load& load = *e.As<ir::Load>();
    const Nest* source = state.FindNest(load.buffer.get());
    if (source == nullptr || source->IsTopLevel()) return e;
    return ir::MakeLoad(
        ir::MakeBuffer(load.buffer->name, load.buffer->dtype, StoredShape(state, *source), source->storage.scope),
        StoredIndices(state, *source, load.indices));
  };
  return BuildCopy(state, nest, storage, stored).status();
}

}  // namespace hone::schedule
