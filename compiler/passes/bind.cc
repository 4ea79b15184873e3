// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "compiler/ir/match.h"

namespace hone::passes {
namespace {

// The loops of one kind that stand directly inside each other, and what is inside all of them.
struct Chain {
  std::vector<const ir::For*> loops;
  ir::Stmt body;

  absl::StatusOr<int64_t> Size() const {
    int64_t size = 1;
    for (const ir::For* loop : loops) {
      const ir::IntImm* extent = loop->extent.As<ir::IntImm>();
      if (extent == nullptr) {
        return absl::FailedPreconditionError(fmt::format("bound loop {} has no constant extent", loop->var));
      }
      size *= extent->value;
    }
    return size;
  }

  // The body with every loop's variable computed from `index`, the innermost fastest.
  ir::Stmt Unrank(const ir::Expr& index) const {
    if (loops.size() == 1) return ir::Substitute(body, {{loops[0]->var, index}});
    ir::Stmt result = body;
    int64_t inner = 1;
    for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
      const int64_t extent = (*it)->extent.As<ir::IntImm>()->value;
      ir::Expr value = inner == 1 ? index : ir::FloorDiv(index, ir::Expr(inner));
      if (it + 1 != loops.rend()) value = ir::FloorMod(value, ir::Expr(extent));
      inner *= extent;
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

// What a statement stores to, by scope.
void CollectStores(const ir::Stmt& s, std::set<ir::Scope>* scopes) {
  if (const ir::Buffer written = ir::WrittenBy(s)) scopes->insert(written->scope);
  ir::ForEachChild(s, [&](const ir::Stmt& child) { CollectStores(child, scopes); }, [](const ir::Expr&) {});
}

bool AllocatesShared(const ir::Stmt& s) {
  const ir::Alloc* alloc = s.As<ir::Alloc>();
  return alloc != nullptr && ir::IsShared(alloc->buffer->scope);
}

bool IsMerge(const ir::Stmt& s) { return s.As<ir::Merge>() != nullptr; }

// A merge to memory that each lane has for itself.
bool MergesForItself(const ir::Stmt& s) { return IsMerge(s) && ir::WrittenBy(s)->scope == ir::Scope::kLocal; }

// `s` where the condition holds. All lanes come to a merge: those for which it does not hold add nothing.
ir::Stmt Where(const ir::Expr& condition, const ir::Stmt& s) {
  if (!ir::AnyStmt(s, IsMerge)) return ir::MakeIf(condition, s);
  if (const ir::Merge* merge = s.As<ir::Merge>()) {
    ir::Merge masked = *merge;
    masked.mask = masked.mask.defined() ? condition && masked.mask : condition;
    return ir::MakeMerge(std::move(masked));
  }
  return ir::MapChildren(
      s, [&](const ir::Stmt& child) { return Where(condition, child); }, [](const ir::Expr& e) { return e; });
}

bool IsLaneLoop(const ir::Stmt& s) {
  const ir::For* loop = s.As<ir::For>();
  return loop != nullptr && loop->kind == ir::LoopKind::kLane;
}

// Whether it holds for a statement of the stage that the block computes; stages inside it do not count.
bool AnyOfStage(const ir::Stmt& s, bool (*holds)(const ir::Stmt&)) {
  bool found = holds(s);
  ir::ForEachChild(
      s,
      [&](const ir::Stmt& child) {
        const ir::Block* block = child.As<ir::Block>();
        if (block == nullptr || block->name.empty()) found = found || AnyOfStage(child, holds);
      },
      [](const ir::Expr&) {});
  return found;
}

bool WritesShared(const ir::Stmt& s) {
  const ir::Buffer written = ir::WrittenBy(s);
  return written != nullptr && ir::IsShared(written->scope);
}

bool FillsShared(const ir::Stmt& stage) { return AnyOfStage(stage, WritesShared); }

class Binder {
 public:
  absl::Status Run(ir::Func* func) {
    HONE_RETURN_IF_ERROR(ChooseLanes(func->body));
    HONE_ASSIGN_OR_RETURN(func->body, Build(func->body, false));
    func->grid = {groups_, lanes_};
    return absl::OkStatus();
  }

 private:
  // As many as the longest stage has that is the launch, fills shared memory or is merged. What is inside loops over
  // lanes has to do with those.
  absl::Status ChooseLanes(const ir::Stmt& s) {
    const ir::For* loop = s.As<ir::For>();
    if (loop != nullptr && loop->kind == ir::LoopKind::kLane) {
      HONE_ASSIGN_OR_RETURN(const int64_t size, ChainFrom(*loop).Size());
      lanes_ = std::max(lanes_, size);
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

  // in_lane: inside a loop that belongs to the lane.
  absl::StatusOr<ir::Stmt> Build(const ir::Stmt& s, bool in_lane) {
    if (const ir::Block* block = s.As<ir::Block>(); block != nullptr && !block->name.empty()) {
      return BuildStage(s, in_lane);
    }
    if (const ir::For* loop = s.As<ir::For>()) {
      if (loop->kind == ir::LoopKind::kGroup) return BuildGroups(*loop);
      if (loop->kind == ir::LoopKind::kLane) return BuildLanes(*loop, in_lane);
      if (loop->kind == ir::LoopKind::kParallel) {
        return absl::FailedPreconditionError(fmt::format("loop {} is parallel where lanes are bound", loop->var));
      }
    }
    if (const ir::Merge* merge = s.As<ir::Merge>(); merge != nullptr && in_lane) {
      ir::Merge bound = *merge;  // lanes beyond the loops have parts, too
      bound.part = ir::FloorMod(bound.part, ir::Expr(bound.parts));
      return ir::MakeMerge(std::move(bound));
    }
    if (ir::WrittenBy(s) != nullptr && !in_lane) return ByFirstLane(s);
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

  // A stage that fills shared memory: by all lanes if it has loops for them, else by the first.
  absl::StatusOr<ir::Stmt> BuildStage(const ir::Stmt& s, bool in_lane) {
    if (!FillsShared(s)) return BuildChildren(s, in_lane);
    return ir::AnyStmt(s, IsLaneLoop) ? BuildChildren(s, false) : ByFirstLane(s);
  }

  // Local memory is every lane's own, so every lane writes it.
  ir::Stmt ByFirstLane(const ir::Stmt& s) const {
    std::set<ir::Scope> scopes;
    CollectStores(s, &scopes);
    scopes.erase(ir::Scope::kLocal);
    if (scopes.empty() || lanes_ == 1) return s;
    return ir::MakeIf(ir::Equals(ir::MakeVar(ir::kLaneVar), ir::Expr(0)), s);
  }

  absl::StatusOr<ir::Stmt> BuildGroups(const ir::For& loop) {
    const Chain chain = ChainFrom(loop);
    if (groups_seen_) {
      return absl::FailedPreconditionError(fmt::format("loop {} is a second nest of groups in one launch", loop.var));
    }
    groups_seen_ = true;
    HONE_ASSIGN_OR_RETURN(groups_, chain.Size());
    HONE_ASSIGN_OR_RETURN(ir::Stmt body, Build(chain.body, false));
    return Chain{chain.loops, std::move(body)}.Unrank(ir::MakeVar(ir::kGroupVar));
  }

  absl::StatusOr<ir::Stmt> BuildLanes(const ir::For& loop, bool in_lane) {
    const Chain chain = ChainFrom(loop);
    if (in_lane) {
      return absl::FailedPreconditionError(fmt::format("loop {} over lanes is inside another", loop.var));
    }
    HONE_ASSIGN_OR_RETURN(const int64_t size, chain.Size());
    if (size != lanes_ && ir::AnyStmt(chain.body, AllocatesShared)) {
      return absl::FailedPreconditionError(fmt::format(
          "loop {} over {} lanes fills shared memory inside, but the launch has {} lanes", loop.var, size, lanes_));
    }
    if (size != lanes_ || chain.loops.size() > 1) HONE_RETURN_IF_ERROR(CheckNoneForItself(chain.body));
    HONE_ASSIGN_OR_RETURN(ir::Stmt body, Build(chain.body, true));
    return ShareOut({chain.loops, std::move(body)}, size);
  }

  // What lanes have for themselves is one element that all lanes merge, since all lanes read it afterwards.
  absl::Status CheckNoneForItself(const ir::Stmt& s) const {
    absl::Status status;
    const auto check = [&](const ir::Stmt& child) {
      if (MergesForItself(child)) {
        status = absl::FailedPreconditionError(
            fmt::format("'{}' is each lane's own, but not all {} lanes of the launch take it together: store it in "
                        "shared memory",
                        ir::WrittenBy(child)->name, lanes_));
      }
      return false;
    };
    ir::AnyStmt(s, check);
    return status;
  }

  // `size` iterations over the lanes there are: each lane takes every lanes_-th, so that neighbours stay neighbours.
  ir::Stmt ShareOut(const Chain& chain, int64_t size) const {
    const ir::Expr lane = ir::MakeVar(ir::kLaneVar);
    if (size == lanes_) return chain.Unrank(lane);
    if (size < lanes_) return Where(lane < ir::Expr(size), chain.Unrank(lane));
    const std::string turn = chain.loops.back()->var + ".turn";
    const ir::Expr index = ir::MakeVar(turn) * ir::Expr(lanes_) + lane;
    ir::Stmt body = chain.Unrank(index);
    if (size % lanes_ != 0) body = Where(index < ir::Expr(size), body);
    return ir::MakeFor(turn, ir::Expr((size + lanes_ - 1) / lanes_), ir::LoopKind::kSerial, body);
  }

  int64_t lanes_ = 1, groups_ = 1;
  bool groups_seen_ = false;
};

}  // namespace

absl::Status Bind(ir::Func& func) { return Binder().Run(&func); }

}  // namespace hone::passes
