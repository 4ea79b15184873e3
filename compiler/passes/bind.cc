// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/passes/passes.h"

namespace hone::passes {
namespace {

// Perfectly nested loops of one kind, and the statement inside all of them.
struct Chain {
  std::vector<const ir::For*> loops;
  ir::Stmt body;

  // The number of iterations. sizes: the open sizes, which extents may use.
  absl::StatusOr<ir::Size> Iterations(std::span<const ir::OpenSize> sizes) const {
    ir::Size count = 1;
    for (const ir::For* loop : loops) {
      const std::optional<ir::Size> extent = ir::ToSize(loop->extent, sizes);
      if (!extent.has_value()) {
        return absl::FailedPreconditionError(
            fmt::format("the extent of bound loop {} is neither constant nor arithmetic on sizes", loop->var));
      }
      count *= *extent;
    }
    return count;
  }

  // The body with each loop variable computed from the linear index, the innermost loop fastest.
  ir::Stmt Unrank(const ir::Expr& index) const {
    if (loops.size() == 1) return ir::Substitute(body, {{loops[0]->var, index}});
    ir::Stmt result = body;
    ir::Expr inner(1);
    for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
      const ir::Expr& extent = (*it)->extent;
      ir::Expr value = ir::ConstantValue(inner) == 1 ? index : ir::FloorDiv(index, inner);
      if (it + 1 != loops.rend()) value = ir::FloorMod(value, extent);
      inner = ir::Simplify(inner * extent);
      result = ir::MakeLet((*it)->var, value, result);
    }
    return result;
  }
};

Chain ChainFrom(const ir::For& first) {
  Chain chain{{&first}, first.body};
  while (const ir::For* next = chain.body.As<ir::For>()) {
    if (next->kind != first.kind) break;
    chain.loops.push_back(next);
    chain.body = next->body;
  }
  return chain;
}

// Adds the scopes of all buffers that the statement writes.
void CollectStores(const ir::Stmt& s, std::set<ir::Scope>* scopes) {
  if (const ir::Buffer written = ir::WrittenBuffer(s)) scopes->insert(written->scope);
  ir::ForEachChild(s, [&](const ir::Stmt& child) { CollectStores(child, scopes); }, [](const ir::Expr&) {});
}

bool AllocatesShared(const ir::Stmt& s) {
  const ir::Alloc* alloc = s.As<ir::Alloc>();
  return alloc != nullptr && ir::IsShared(alloc->buffer->scope);
}

bool IsLaneReduce(const ir::Stmt& s) { return s.As<ir::LaneReduce>() != nullptr; }

// Whether the statement is a lane reduction whose result goes to local memory.
bool IsLocalLaneReduce(const ir::Stmt& s) {
  return IsLaneReduce(s) && ir::WrittenBuffer(s)->scope == ir::Scope::kLocal;
}

// Executes `s` under the condition. All lanes must reach a lane reduction, so there the condition becomes part of its
// mask.
ir::Stmt Predicate(const ir::Expr& condition, const ir::Stmt& s) {
  if (!ir::AnyStmt(s, IsLaneReduce)) return ir::MakeIf(condition, s);
  if (const ir::LaneReduce* reduce = s.As<ir::LaneReduce>()) {
    ir::LaneReduce masked = *reduce;
    masked.mask = masked.mask.defined() ? condition && masked.mask : condition;
    return ir::MakeLaneReduce(std::move(masked));
  }
  return ir::MapChildren(
      s, [&](const ir::Stmt& child) { return Predicate(condition, child); }, [](const ir::Expr& e) { return e; });
}

bool IsLaneLoop(const ir::Stmt& s) {
  const ir::For* loop = s.As<ir::For>();
  return loop != nullptr && loop->kind == ir::LoopKind::kLane;
}

// Whether the predicate holds for some statement of the stage that the block computes, not counting stages inside it.
bool AnyStmtOfStage(const ir::Stmt& s, bool (*holds)(const ir::Stmt&)) {
  bool found = holds(s);
  ir::ForEachChild(
      s,
      [&](const ir::Stmt& child) {
        const ir::Block* block = child.As<ir::Block>();
        if (block == nullptr || block->name.empty()) found = found || AnyStmtOfStage(child, holds);
      },
      [](const ir::Expr&) {});
  return found;
}

bool WritesShared(const ir::Stmt& s) {
  const ir::Buffer written = ir::WrittenBuffer(s);
  return written != nullptr && ir::IsShared(written->scope);
}

bool FillsShared(const ir::Stmt& stage) { return AnyStmtOfStage(stage, WritesShared); }

class Binder {
 public:
  explicit Binder(std::vector<ir::OpenSize> sizes) : sizes_(std::move(sizes)) {}

  absl::Status Run(ir::Func* func) {
    HONE_RETURN_IF_ERROR(ChooseLanes(func->body));
    HONE_ASSIGN_OR_RETURN(func->body, Build(func->body, false));
    func->grid = {groups_.max(), lanes_, groups_.IsFixed() ? ir::Expr() : ir::Expr(groups_)};
    return absl::OkStatus();
  }

 private:
  // Sets lanes_ to the size of the largest lane loop chain that is not inside another. Inner lane loops are distributed
  // over these lanes.
  absl::Status ChooseLanes(const ir::Stmt& s) {
    const ir::For* loop = s.As<ir::For>();
    if (loop != nullptr && loop->kind == ir::LoopKind::kLane) {
      HONE_ASSIGN_OR_RETURN(const ir::Size count, ChainFrom(*loop).Iterations(sizes_));
      lanes_ = std::max(lanes_, count.max());
      return absl::OkStatus();
    }
    absl::Status status;
    ir::ForEachChild(
        s,
        [&](const ir::Stmt& child) {
          if (status.ok()) status = ChooseLanes(child);
        },
        [](const ir::Expr&) {});
    return status;
  }

  // Rewrites `s`. in_lane: it is inside a lane loop, so each lane executes its own part.
  absl::StatusOr<ir::Stmt> Build(const ir::Stmt& s, bool in_lane) {
    if (const ir::Block* block = s.As<ir::Block>(); block != nullptr && !block->name.empty()) {
      return BuildStage(s, in_lane);
    }
    if (const ir::For* loop = s.As<ir::For>()) {
      if (loop->kind == ir::LoopKind::kGroup) return BuildGroups(*loop);
      if (loop->kind == ir::LoopKind::kLane) return BuildLanes(*loop, in_lane);
      if (loop->kind == ir::LoopKind::kParallel) {
        return absl::FailedPreconditionError(
            fmt::format("loop {} is parallel, which is not allowed where loops are bound to lanes", loop->var));
      }
    }
    if (const ir::LaneReduce* reduce = s.As<ir::LaneReduce>(); reduce != nullptr && in_lane) {
      ir::LaneReduce bound = *reduce;  // lanes beyond the loop's extent take part as well
      bound.part = ir::FloorMod(bound.part, ir::Expr(bound.parts));
      return ir::MakeLaneReduce(std::move(bound));
    }
    if (ir::WrittenBuffer(s) != nullptr && !in_lane) return RestrictToFirstLane(s);
    return BuildChildren(s, in_lane);
  }

  absl::StatusOr<ir::Stmt> BuildChildren(const ir::Stmt& s, bool in_lane) {
    absl::Status status;
    ir::Stmt result = ir::MapChildren(
        s,
        [&](const ir::Stmt& child) {
          if (!status.ok()) return child;
          absl::StatusOr<ir::Stmt> built = Build(child, in_lane);
          status = built.status();
          return status.ok() ? *std::move(built) : child;
        },
        [](const ir::Expr& e) { return e; });
    if (!status.ok()) return status;
    return result;
  }

  // Rewrites a stage. One that fills shared memory is executed by all lanes if it has lane loops, else by the first
  // lane.
  absl::StatusOr<ir::Stmt> BuildStage(const ir::Stmt& s, bool in_lane) {
    if (!FillsShared(s)) return BuildChildren(s, in_lane);
    return ir::AnyStmt(s, IsLaneLoop) ? BuildChildren(s, false) : RestrictToFirstLane(s);
  }

  // Restricts `s` to the first lane, unless it writes local memory, of which each lane has its own.
  ir::Stmt RestrictToFirstLane(const ir::Stmt& s) const {
    std::set<ir::Scope> scopes;
    CollectStores(s, &scopes);
    scopes.erase(ir::Scope::kLocal);
    if (scopes.empty() || lanes_ == 1) return s;
    return ir::MakeIf(ir::Equals(ir::MakeVar(ir::kLaneVar), ir::Expr(0)), s);
  }

  absl::StatusOr<ir::Stmt> BuildGroups(const ir::For& loop) {
    const Chain chain = ChainFrom(loop);
    if (groups_seen_) {
      return absl::FailedPreconditionError(
          fmt::format("loop {} begins a second nest of group loops; a launch can have only one", loop.var));
    }
    groups_seen_ = true;
    HONE_ASSIGN_OR_RETURN(groups_, chain.Iterations(sizes_));
    HONE_ASSIGN_OR_RETURN(ir::Stmt body, Build(chain.body, false));
    const ir::Expr group = ir::MakeVar(ir::kGroupVar);
    // Groups without work do nothing. If there may be barriers, they repeat the last group's work instead: PoCL 3.1
    // makes wrong code of barriers inside a condition.
    const bool guarded = !groups_.IsFixed() && !ir::AnyStmt(body, AllocatesShared);
    const ir::Expr last = ir::Max(ir::Expr(groups_) - ir::Expr(1), ir::Expr(0));
    const Chain built{chain.loops, std::move(body)};
    if (groups_.IsFixed()) return built.Unrank(group);
    return guarded ? ir::MakeIf(group < ir::Expr(groups_), built.Unrank(group)) : built.Unrank(ir::Min(group, last));
  }

  absl::StatusOr<ir::Stmt> BuildLanes(const ir::For& loop, bool in_lane) {
    const Chain chain = ChainFrom(loop);
    if (in_lane) {
      return absl::FailedPreconditionError(fmt::format("lane loop {} is inside another", loop.var));
    }
    HONE_ASSIGN_OR_RETURN(const ir::Size count, chain.Iterations(sizes_));
    const bool all_lanes = count == lanes_;
    if (!all_lanes && ir::AnyStmt(chain.body, AllocatesShared)) {
      return absl::FailedPreconditionError(fmt::format(
          "loop {} over {} lanes fills shared memory inside; such a loop must have all {} lanes of the launch",
          loop.var, count, lanes_));
    }
    if (!all_lanes || chain.loops.size() > 1) HONE_RETURN_IF_ERROR(CheckNoLocalLaneReduce(chain.body));
    HONE_ASSIGN_OR_RETURN(ir::Stmt body, Build(chain.body, true));
    return DistributeOverLanes({chain.loops, std::move(body)}, count);
  }

  // Refuses a lane reduction to local memory that does not span all lanes: the other lanes would read an unset result.
  absl::Status CheckNoLocalLaneReduce(const ir::Stmt& s) const {
    absl::Status status;
    const auto check = [&](const ir::Stmt& child) {
      if (IsLocalLaneReduce(child)) {
        status = absl::FailedPreconditionError(fmt::format(
            "the result of the lane reduction to '{}' is local to each lane, but not all {} lanes of the launch "
            "take part: store it in shared memory",
            ir::WrittenBuffer(child)->name, lanes_));
      }
      return false;
    };
    ir::AnyStmt(s, check);
    return status;
  }

  // Distributes the iterations over the lanes. Lane l takes iterations l, l + lanes_, and so on, so that consecutive
  // lanes access consecutive elements.
  ir::Stmt DistributeOverLanes(const Chain& chain, const ir::Size& count) const {
    const ir::Expr lane = ir::MakeVar(ir::kLaneVar);
    if (count == lanes_) return chain.Unrank(lane);
    if (count.max() <= lanes_) return Predicate(lane < ir::Expr(count), chain.Unrank(lane));
    const std::string turn = chain.loops.back()->var + ".turn";
    const ir::Expr index = ir::MakeVar(turn) * ir::Expr(lanes_) + lane;
    ir::Stmt body = chain.Unrank(index);
    if (!ir::Divides(lanes_, count)) body = Predicate(index < ir::Expr(count), body);
    return ir::MakeFor(turn, ir::Expr(ir::CeilDiv(count, lanes_)), ir::LoopKind::kSerial, body);
  }

  const std::vector<ir::OpenSize> sizes_;
  int64_t lanes_ = 1;
  ir::Size groups_ = 1;
  bool groups_seen_ = false;
};

}  // namespace

absl::Status Bind(ir::Func& func) { return Binder(ir::OpenSizesOf(func)).Run(&func); }

}  // namespace hone::passes
