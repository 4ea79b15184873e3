// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/match.h"
#include "compiler/passes/passes.h"

namespace hone::passes {
namespace {

using Buffers = std::set<const ir::BufferNode*>;

bool Intersect(const Buffers& a, const Buffers& b) {
  for (const ir::BufferNode* buffer : a) {
    if (b.contains(buffer)) return true;
  }
  return false;
}

// The accesses of lanes to shared memory since the last barrier.
struct Effects {
  Buffers reads, writes, copies;
  bool waits = false, bulk_copies = false;  // waits: a lane waited for copies; bulk_copies: bulk copies were issued

  void Add(const Effects& other) {
    reads.insert(other.reads.begin(), other.reads.end());
    writes.insert(other.writes.begin(), other.writes.end());
    copies.insert(other.copies.begin(), other.copies.end());
    waits |= other.waits;
    bulk_copies |= other.bulk_copies;
  }
  // Whether a barrier must separate these effects from those of `next`. Elements of a copy in flight need none: to read
  // them before the wait is an error with or without a barrier. A bulk copy after a wait does need one. The copies of
  // different commit groups share few barrier objects (mbarrier), so all lanes must have seen an object complete before
  // it is used again.
  bool NeedsBarrierBefore(const Effects& next) const {
    return (waits && next.bulk_copies) || Intersect(writes, next.reads) || Intersect(writes, next.writes) ||
           Intersect(writes, next.copies) || Intersect(reads, next.writes) || Intersect(reads, next.copies);
  }
  // A lane has waited, so its finished copies count as writes. With pending copies some stay in flight.
  void CompleteCopies(const ir::Wait& wait) {
    waits = true;
    writes.insert(copies.begin(), copies.end());
    if (wait.pending == 0) copies.clear();
  }
  // All lanes of the group have met at a barrier.
  void ClearAtBarrier() { reads = {}, writes = {}, waits = false; }
};

void AddReads(const ir::Expr& e, Effects* effects) {
  ir::ForEachExpr(e, [&](const ir::Expr& x) {
    const ir::Load* load = x.As<ir::Load>();
    if (load != nullptr && ir::IsShared(load->buffer->scope)) effects->reads.insert(load->buffer.get());
  });
}

Effects EffectsOf(const ir::Stmt& s) {
  Effects effects;
  if (const ir::Buffer written = ir::WrittenBuffer(s); written != nullptr && ir::IsShared(written->scope)) {
    (s.As<ir::Copy>() != nullptr ? effects.copies : effects.writes).insert(written.get());
  }
  if (const ir::Copy* copy = s.As<ir::Copy>()) effects.bulk_copies = IsBulkCopy(*copy);
  ir::ForEachChild(
      s, [&](const ir::Stmt& child) { effects.Add(EffectsOf(child)); },
      [&](const ir::Expr& e) { AddReads(e, &effects); });
  return effects;
}

bool IsLaneConditional(const ir::Stmt& s) {
  const ir::If* branch = s.As<ir::If>();
  return branch != nullptr && ir::UsesVar(branch->condition, ir::kLaneVar);
}

// Whether the statement is the block of a stage that is stored in shared memory.
bool IsSharedFill(const ir::Stmt& s) {
  const ir::Block* block = s.As<ir::Block>();
  const bool is_stage = block != nullptr && !block->name.empty();
  if (!is_stage && !IsLaneConditional(s)) return false;
  const Effects effects = EffectsOf(s);
  return !effects.writes.empty() || !effects.copies.empty();
}

// Whether a barrier may be needed inside the statement: it contains a stage that fills shared memory, or a wait. Any
// other statement is one step of every lane. A statement that only some lanes execute is one step as well, because no
// barrier may stand in it.
bool MayNeedBarrierInside(const ir::Stmt& s) {
  if (IsLaneConditional(s)) return false;
  bool found = false;
  ir::ForEachChild(
      s,
      [&](const ir::Stmt& child) {
        found = found || child.As<ir::Wait>() != nullptr || IsSharedFill(child) || MayNeedBarrierInside(child);
      },
      [](const ir::Expr&) {});
  return found;
}

bool RunsAtLeastOnce(const ir::For& loop, const ir::Ranges& ranges) {
  return ir::BoundsOf(loop.extent, ranges).low >= 1;
}

ir::Ranges WithLoopRange(const ir::For& loop, ir::Ranges ranges) {
  ranges[loop.var] = {0, ir::BoundsOf(loop.extent, ranges).high - 1};
  return ranges;
}

// Collects the effects that can happen in `s` before its first barrier. Returns false if every path reaches a barrier.
bool CollectHeadEffects(const ir::Stmt& s, const ir::Ranges& ranges, Effects* effects) {
  if (s.As<ir::Barrier>() != nullptr) return false;
  if (const ir::Block* block = s.As<ir::Block>()) {
    for (const ir::Stmt& child : block->stmts) {
      if (!CollectHeadEffects(child, ranges, effects)) return false;
    }
    return true;
  }
  const ir::For* loop = s.As<ir::For>();
  const ir::If* branch = s.As<ir::If>();
  const ir::Ranges inner = loop != nullptr ? WithLoopRange(*loop, ranges) : ranges;
  int open = 0, ways = 0;
  ir::ForEachChild(
      s,
      [&](const ir::Stmt& child) {
        open += CollectHeadEffects(child, inner, effects) ? 1 : 0;
        ++ways;
      },
      [&](const ir::Expr& e) { AddReads(e, effects); });
  if (ir::WrittenBuffer(s) != nullptr) effects->Add(EffectsOf(s));
  const bool passes_by = branch != nullptr ? ways == 1 : loop != nullptr ? !RunsAtLeastOnce(*loop, ranges) : ways == 0;
  return open > 0 || passes_by;
}

class BarrierInserter {
 public:
  explicit BarrierInserter(const ir::Ranges& ranges) : ranges_(ranges) {}

  ir::Stmt Insert(const ir::Stmt& s) {
    if (!MayNeedBarrierInside(s) && !IsSequence(s)) return Step(s);
    if (const ir::Block* block = s.As<ir::Block>()) {
      std::vector<ir::Stmt> stmts;
      for (const ir::Stmt& child : block->stmts) Append(Insert(child), &stmts);
      return ir::MakeBlock(std::move(stmts), block->name);
    }
    if (const ir::For* loop = s.As<ir::For>()) return Loop(*loop);
    if (const ir::If* branch = s.As<ir::If>()) return Branch(*branch);
    return ir::MapChildren(
        s, [&](const ir::Stmt& child) { return Insert(child); }, [](const ir::Expr& e) { return e; });
  }

 private:
  static void Append(const ir::Stmt& s, std::vector<ir::Stmt>* stmts) {
    const ir::Block* block = s.As<ir::Block>();
    if (block == nullptr || !block->name.empty()) {
      stmts->push_back(s);
    } else {
      stmts->insert(stmts->end(), block->stmts.begin(), block->stmts.end());
    }
  }

  // Whether the statement has to be split into steps: it is a sequence in which a barrier may stand.
  static bool IsSequence(const ir::Stmt& s) {
    const ir::Block* block = s.As<ir::Block>();
    return block != nullptr && block->name.empty();
  }

  // Handles one step of every lane. Data that a step both writes and reads belong to one lane each.
  ir::Stmt Step(const ir::Stmt& s) {
    if (const ir::Wait* wait = s.As<ir::Wait>()) {
      since_.CompleteCopies(*wait);
      return s;
    }
    const Effects effects = EffectsOf(s);
    const bool wait = since_.NeedsBarrierBefore(effects);
    if (wait) since_.ClearAtBarrier();
    since_.Add(effects);
    return wait ? ir::MakeBlock({ir::MakeBarrier(), s}) : s;
  }

  // Handles a loop. The next iteration starts with the copies of this one in flight. Their writes, after the wait, are
  // checked against later accesses inside the body.
  ir::Stmt Loop(const ir::For& loop) {
    const Effects before = since_;
    const ir::Ranges around = std::exchange(ranges_, WithLoopRange(loop, ranges_));
    const Buffers copied = EffectsOf(loop.body).copies;
    since_.copies.insert(copied.begin(), copied.end());
    ir::Stmt body = Insert(loop.body);
    Effects head;
    CollectHeadEffects(body, ranges_, &head);
    if (since_.NeedsBarrierBefore(head)) {
      std::vector<ir::Stmt> stmts;
      Append(body, &stmts);
      stmts.push_back(ir::MakeBarrier());
      body = ir::MakeBlock(std::move(stmts));
      since_.ClearAtBarrier();
    }
    ranges_ = around;
    if (!RunsAtLeastOnce(loop, ranges_)) since_.Add(before);
    return ir::MakeFor(loop.var, loop.extent, loop.kind, body);
  }

  ir::Stmt Branch(const ir::If& branch) {
    const Effects before = since_;
    const ir::Stmt then_case = Insert(branch.then_case);
    const Effects after_then = since_;
    since_ = before;
    const ir::Stmt else_case = branch.else_case.defined() ? Insert(branch.else_case) : ir::Stmt();
    since_.Add(after_then);
    return ir::MakeIf(branch.condition, then_case, else_case);
  }

  Effects since_;      // effects of all lanes since the last barrier
  ir::Ranges ranges_;  // ranges of the variables in scope
};

}  // namespace

ir::Stmt InsertBarriers(const ir::Stmt& s, const ir::Ranges& ranges) { return BarrierInserter(ranges).Insert(s); }

}  // namespace hone::passes
