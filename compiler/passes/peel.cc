// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/passes.h"

namespace hone::passes {
namespace {

// A loop extent min(full, rest). rest is `tail` where it is less than `full`. The tail is undefined if an open size
// decides it.
struct Minimum {
  ir::Expr expr, rest;
  int64_t full;
  ir::Expr tail;
};

// What is known where a statement runs.
struct Scope {
  ir::Ranges ranges, sizes;                 // of the loop variables in scope and of the open sizes; of these alone
  std::map<std::string, ir::Expr> extents;  // of the loops in scope whose number of iterations only open sizes decide
};

// Whether only loops of constant extent can be of this kind.
bool IsWrittenOut(ir::LoopKind kind) { return kind == ir::LoopKind::kVectorized || kind == ir::LoopKind::kUnrolled; }

bool UsesAny(const ir::Expr& e, const ir::Ranges& sizes) {
  return std::ranges::any_of(sizes, [&](const auto& size) { return ir::UsesVar(e, size.first); });
}

std::optional<Minimum> AsMinimum(const ir::Expr& e, const ir::Ranges& ranges, const ir::Ranges& sizes) {
  const ir::Binary* m = e.As<ir::Binary>();
  if (m == nullptr || m->op != ir::BinaryOp::kMin) return std::nullopt;
  const bool left = m->a.As<ir::IntImm>() != nullptr;
  const ir::IntImm* full = left ? m->a.As<ir::IntImm>() : m->b.As<ir::IntImm>();
  if (full == nullptr || full->value <= 0) return std::nullopt;
  const ir::Expr rest = left ? m->b : m->a;
  if (UsesAny(rest, sizes)) return Minimum{e, rest, full->value, {}};
  const ir::Linear linear = ir::ToLinear(rest, {});
  for (const auto& [atom, k] : linear.terms) {
    if (k % full->value != 0) return std::nullopt;
  }
  const int64_t tail = ((linear.constant % full->value) + full->value) % full->value;
  if (tail == 0 || ir::BoundsOf(rest, ranges).low < 1) return std::nullopt;
  return Minimum{e, rest, full->value, ir::Expr(tail)};
}

bool Bound(const ir::Expr& e, const ir::Ranges& ranges) {
  bool bound = true;
  ir::ForEachExpr(e, [&](const ir::Expr& x) {
    if (const ir::Var* v = x.As<ir::Var>()) bound &= ranges.contains(v->name);
  });
  return bound;
}

bool HasSelect(const ir::Expr& e) {
  bool has = false;
  ir::ForEachExpr(e, [&](const ir::Expr& x) { has = has || x.As<ir::Select>() != nullptr; });
  return has;
}

bool IsMinimum(const ir::Expr& e) {
  const ir::Binary* m = e.As<ir::Binary>();
  return m != nullptr && m->op == ir::BinaryOp::kMin;
}

// The outermost minimum in the extent of a loop of that kind. A minimum over an open size inside one that depends on
// loops further in does not count: the outer one limits the loop where these run.
std::optional<Minimum> FindMinimum(const ir::Expr& e, ir::LoopKind kind, const ir::Ranges& ranges,
                                   const ir::Ranges& sizes) {
  std::optional<Minimum> found;
  if (Bound(e, ranges)) {
    found = AsMinimum(e, ranges, sizes);
    if (found.has_value() && (found->tail.defined() || IsWrittenOut(kind))) return found;
    found.reset();
  } else if (IsMinimum(e) && UsesAny(e, sizes)) {
    return found;
  }
  ir::ForEachChild(e, [&](const ir::Expr& child) {
    if (!found.has_value()) found = FindMinimum(child, kind, ranges, sizes);
  });
  return found;
}

// In the extent of a loop that no condition decides any more: FindCondition comes first.
std::optional<Minimum> FindMinimum(const ir::Stmt& s, const ir::Ranges& ranges, const ir::Ranges& sizes) {
  std::optional<Minimum> found;
  if (const ir::For* loop = s.As<ir::For>(); loop != nullptr && !HasSelect(loop->extent)) {
    found = FindMinimum(loop->extent, loop->kind, ranges, sizes);
  }
  ir::ForEachChild(
      s,
      [&](const ir::Stmt& child) {
        if (!found.has_value()) found = FindMinimum(child, ranges, sizes);
      },
      [](const ir::Expr&) {});
  return found;
}

ir::Expr Replace(const ir::Expr& e, const ir::Expr& from, const ir::Expr& to) {
  if (ir::Equal(e, from)) return to;
  return ir::MapChildren(e, [&](const ir::Expr& child) { return Replace(child, from, to); });
}
ir::Stmt Replace(const ir::Stmt& s, const ir::Expr& from, const ir::Expr& to) {
  return ir::MapChildren(
      s, [&](const ir::Stmt& child) { return Replace(child, from, to); },
      [&](const ir::Expr& e) { return Replace(e, from, to); });
}

bool Contains(const ir::Expr& e, const ir::Expr& part) {
  bool found = false;
  ir::ForEachExpr(e, [&](const ir::Expr& x) { found = found || ir::Equal(x, part); });
  return found;
}

// Whether the expression never decreases when the part increases. True if it does not contain the part.
bool IsNonDecreasingIn(const ir::Expr& e, const ir::Expr& part) {
  if (ir::Equal(e, part) || !Contains(e, part)) return true;
  const ir::Binary* b = e.As<ir::Binary>();
  if (b == nullptr || !IsNonDecreasingIn(b->a, part)) return false;
  switch (b->op) {
    case ir::BinaryOp::kAdd:
    case ir::BinaryOp::kMin:
    case ir::BinaryOp::kMax:
      return IsNonDecreasingIn(b->b, part);
    case ir::BinaryOp::kSub:
      return !Contains(b->b, part);
    case ir::BinaryOp::kMul:
    case ir::BinaryOp::kFloorDiv: {
      const ir::IntImm* by = b->b.As<ir::IntImm>();
      return by != nullptr && by->value > 0;
    }
    default:
      return false;
  }
}

// The statement where rest is less than full, and an open size decides rest. Loops that are written out keep their full
// length, and a condition leaves out the iterations behind the end; others are shorter.
ir::Stmt MaskTail(const ir::Stmt& s, const Minimum& m, const ir::Ranges& ranges) {
  const auto rest = [&](const ir::Expr& e) { return Replace(e, m.expr, m.rest); };
  const ir::For* loop = s.As<ir::For>();
  ir::Expr full;
  ir::Ranges inside = ranges;
  if (loop != nullptr) {
    // If the extent may decrease, its full length is its upper bound.
    full = IsNonDecreasingIn(loop->extent, m.expr)
               ? ir::Simplify(Replace(loop->extent, m.expr, ir::Expr(m.full)), ranges)
               : ir::Expr(ir::BoundsOf(loop->extent, ranges).high);
    inside[loop->var] = {0, ir::BoundsOf(full, ranges).high - 1};
  }
  if (loop == nullptr || !IsWrittenOut(loop->kind) || !Contains(loop->extent, m.expr)) {
    return ir::MapChildren(s, [&](const ir::Stmt& child) { return MaskTail(child, m, inside); }, rest);
  }
  return ir::MakeFor(loop->var, full, loop->kind,
                     ir::MakeIf(ir::MakeVar(loop->var) < rest(loop->extent), MaskTail(loop->body, m, inside)));
}

// The statement where the condition has the value: it decides between the branches of Selects.
ir::Stmt Decide(const ir::Stmt& s, const ir::Expr& condition, bool value) {
  const std::function<ir::Expr(const ir::Expr&)> decide = [&](const ir::Expr& e) -> ir::Expr {
    const ir::Select* select = e.As<ir::Select>();
    if (select == nullptr || !ir::Equal(select->condition, condition)) return ir::MapChildren(e, decide);
    return decide(value ? select->on_true : select->on_false);
  };
  const std::function<ir::Stmt(const ir::Stmt&)> visit = [&](const ir::Stmt& child) {
    return ir::MapChildren(child, visit, decide);
  };
  return visit(s);
}

// The comparison of indices as a number that is at least 0 where it is true; nullopt for other expressions, and where
// values of tensors take part, which may be any numbers.
std::optional<ir::Linear> Surplus(const ir::Binary& comparison, const ir::Ranges& ranges) {
  const bool less = comparison.op == ir::BinaryOp::kLt || comparison.op == ir::BinaryOp::kLe;
  const bool more = comparison.op == ir::BinaryOp::kGt || comparison.op == ir::BinaryOp::kGe;
  if ((!less && !more) || comparison.a.type() != ir::kIndexType) return std::nullopt;
  for (const ir::Expr& side : {comparison.a, comparison.b}) {
    if (!Bound(side, ranges) || ir::HasLoad(side)) return std::nullopt;
  }
  ir::Linear surplus = ir::ToLinear(less ? comparison.b : comparison.a, {});
  surplus.Add(ir::ToLinear(less ? comparison.a : comparison.b, {}), -1);
  const bool strict = comparison.op == ir::BinaryOp::kLt || comparison.op == ir::BinaryOp::kGt;
  if (strict) surplus.constant -= 1;
  return surplus;
}

// The statement where rest >= full, which decides comparisons with the end that is `rest` away.
ir::Stmt DecideWhereFull(const ir::Stmt& s, const ir::Linear& rest, int64_t full, const ir::Ranges& ranges) {
  ir::Ranges inside = ranges;
  if (const ir::For* loop = s.As<ir::For>()) {
    inside[loop->var] = {0, ir::BoundsOf(loop->extent, ranges).high - 1};
  }
  const std::function<ir::Expr(const ir::Expr&)> decide = [&](const ir::Expr& e) -> ir::Expr {
    const ir::Binary* b = e.As<ir::Binary>();
    std::optional<ir::Linear> surplus = b != nullptr ? Surplus(*b, inside) : std::nullopt;
    if (!surplus.has_value()) return ir::MapChildren(e, decide);
    surplus->Add(rest, -1);
    return ir::BoundsOf(*surplus, inside).low >= -full ? ir::MakeBool(true) : e;
  };
  return ir::MapChildren(s, [&](const ir::Stmt& child) { return DecideWhereFull(child, rest, full, inside); }, decide);
}

// The condition of the outermost Select in the expression, if all its variables have ranges; else undefined.
ir::Expr OutermostCondition(const ir::Expr& e, const ir::Ranges& ranges) {
  if (const ir::Select* select = e.As<ir::Select>()) {
    return Bound(select->condition, ranges) ? select->condition : ir::Expr();
  }
  ir::Expr found;
  ir::ForEachChild(e, [&](const ir::Expr& child) {
    if (!found.defined()) found = OutermostCondition(child, ranges);
  });
  return found;
}

// The condition that decides between the lengths of a tile, in the extent of a loop; undefined if there is none. The
// schedule makes such extents where tiles of an open axis may be shorter (schedule/steps/split.cc).
ir::Expr FindCondition(const ir::Stmt& s, const ir::Ranges& ranges, const ir::Ranges& sizes) {
  if (sizes.empty()) return {};
  ir::Expr found;
  const ir::For* loop = s.As<ir::For>();
  if (loop != nullptr && (IsWrittenOut(loop->kind) || loop->extent.As<ir::Select>() != nullptr)) {
    found = OutermostCondition(loop->extent, ranges);
  }
  ir::ForEachChild(
      s,
      [&](const ir::Stmt& child) {
        if (!found.defined()) found = FindCondition(child, ranges, sizes);
      },
      [](const ir::Expr&) {});
  return found;
}

// The length of a task, min(full, rest), of which only the last task is shorter: by an open size, which decides `last`.
struct TaskLength {
  ir::Expr expr, rest;
  int64_t full;
  ir::Expr last;
};

// What the expression stays below, as an expression of open sizes; undefined if it is not known. It is the number of a
// loop's iterations, or of the parts that one of several fused loops has.
ir::Expr CountOf(const ir::Expr& e, const Scope& scope) {
  if (const ir::Var* v = e.As<ir::Var>()) {
    const auto loop = scope.extents.find(v->name);
    return loop != scope.extents.end() ? loop->second : ir::Expr();
  }
  const ir::Binary* b = e.As<ir::Binary>();
  if (b == nullptr || !Bound(b->b, scope.sizes)) return {};
  if (b->op == ir::BinaryOp::kFloorMod) return b->b;
  const ir::Expr whole = b->op == ir::BinaryOp::kFloorDiv ? CountOf(b->a, scope) : ir::Expr();
  return whole.defined() ? ir::FloorDiv(whole, b->b) : ir::Expr();
}

// The length of the last task, where `rest` is n - full * task with tasks below ceil(n / full); undefined elsewhere.
ir::Expr LengthOfLast(const ir::Expr& rest, int64_t full, const Scope& scope) {
  const ir::Linear linear = ir::ToLinear(rest, {});
  ir::Expr all(linear.constant), task;
  for (const auto& [atom, k] : linear.terms) {
    if (Bound(atom, scope.sizes)) {
      all = all + ir::Expr(k) * atom;
    } else if (k == -full && !task.defined()) {
      task = atom;
    } else {
      return {};
    }
  }
  const ir::Expr count = task.defined() ? CountOf(task, scope) : ir::Expr();
  if (!count.defined()) return {};
  const ir::Expr wanted = ir::FloorDiv(all + ir::Expr(full - 1), ir::Expr(full));
  if (!ir::Equal(ir::Simplify(count, scope.sizes), ir::Simplify(wanted, scope.sizes))) return {};
  return ir::Simplify(ir::FloorMod(all, ir::Expr(full)), scope.sizes);
}

// The first length of a task in the expression.
std::optional<TaskLength> FindTaskLength(const ir::Expr& e, const Scope& scope) {
  std::optional<TaskLength> found;
  const auto m = AsMinimum(e, scope.ranges, scope.sizes);
  if (m.has_value() && !m->tail.defined() && Bound(m->rest, scope.ranges)) {
    const ir::Expr last = LengthOfLast(m->rest, m->full, scope);
    if (last.defined()) return TaskLength{m->expr, m->rest, m->full, last};
  }
  ir::ForEachChild(e, [&](const ir::Expr& child) {
    if (!found.has_value()) found = FindTaskLength(child, scope);
  });
  return found;
}

// The length of the task that the statement is inside, if it decides the lengths of tiles in it.
std::optional<TaskLength> FindTaskLength(const ir::Stmt& s, const Scope& scope) {
  if (scope.sizes.empty()) return std::nullopt;
  std::optional<TaskLength> found;
  if (const ir::For* loop = s.As<ir::For>(); loop != nullptr && HasSelect(loop->extent)) {
    found = FindTaskLength(loop->extent, scope);
  }
  ir::ForEachChild(
      s,
      [&](const ir::Stmt& child) {
        if (!found.has_value()) found = FindTaskLength(child, scope);
      },
      [](const ir::Expr&) {});
  return found;
}

// The kind of a loop whose length an open size still decides.
ir::LoopKind KindOf(const ir::For& loop, const ir::Ranges& sizes) {
  return IsWrittenOut(loop.kind) && UsesAny(loop.extent, sizes) ? ir::LoopKind::kSerial : loop.kind;
}

bool IsGroupLoop(const ir::Stmt& s) {
  const ir::For* loop = s.As<ir::For>();
  return loop != nullptr && loop->kind == ir::LoopKind::kGroup;
}

// Whether no condition may stand around the statement: a launch has one nest of group loops, so the versions for small
// and large sizes are inside it.
bool StaysWhole(const ir::Stmt& s, const ir::Ranges& sizes) { return !sizes.empty() && ir::AnyStmt(s, IsGroupLoop); }

// Whether loops inside the statement have buffers of their own: a task with tiles in it, not a tile.
bool HoldsTiles(const ir::Stmt& s) {
  const auto allocates = [](const ir::Stmt& child) { return child.As<ir::Alloc>() != nullptr; };
  return ir::AnyStmt(
      s, [&](const ir::Stmt& child) { return child.As<ir::For>() != nullptr && ir::AnyStmt(child, allocates); });
}

ir::Stmt PeelIn(const ir::Stmt& s, const Scope& scope) {
  const bool whole = StaysWhole(s, scope.sizes);
  const auto inside = [&] {
    return ir::MapChildren(
        s, [&](const ir::Stmt& child) { return PeelIn(child, scope); }, [](const ir::Expr& e) { return e; });
  };
  // A full task knows the number and the lengths of its tiles. Both versions of a task share its buffers.
  if (const auto task = whole ? std::nullopt : FindTaskLength(s, scope)) {
    if (s.As<ir::Alloc>() != nullptr) return inside();
    const auto version = [&](const ir::Stmt& task_of_length) {
      return PeelIn(ir::Simplify(task_of_length, scope.ranges), scope);
    };
    const ir::Stmt full = DecideWhereFull(Replace(s, task->expr, ir::Expr(task->full)), ir::ToLinear(task->rest, {}),
                                          task->full, scope.ranges);
    return ir::MakeIf(task->rest >= ir::Expr(task->full), version(full), version(Replace(s, task->expr, task->last)));
  }
  const ir::Expr condition = whole ? ir::Expr() : FindCondition(s, scope.ranges, scope.sizes);
  // In the last task, open sizes alone decide the lengths. There is a version of each tile, not of the task.
  const bool in_task = condition.defined() && Bound(condition, scope.sizes) && HoldsTiles(s);
  if (condition.defined() && !in_task) {
    const auto version = [&](bool value, ir::Ranges ranges) {
      Scope own = scope;
      own.ranges = std::move(ranges);
      return PeelIn(ir::Simplify(Decide(s, condition, value), own.ranges), own);
    };
    return ir::MakeIf(condition, version(true, ir::RangesWhere(condition, scope.ranges)), version(false, scope.ranges));
  }
  if (const auto m = whole ? std::nullopt : FindMinimum(s, scope.ranges, scope.sizes)) {
    return PeelIn(ir::MakeIf(m->rest >= ir::Expr(m->full), Replace(s, m->expr, ir::Expr(m->full)),
                             m->tail.defined() ? Replace(s, m->expr, m->tail) : MaskTail(s, *m, scope.ranges)),
                  scope);
  }
  if (const ir::For* loop = s.As<ir::For>()) {
    Scope inner = scope;
    inner.ranges[loop->var] = {0, ir::BoundsOf(loop->extent, scope.ranges).high - 1};
    if (Bound(loop->extent, scope.sizes)) inner.extents[loop->var] = loop->extent;
    const ir::Stmt body = PeelIn(loop->body, inner);
    const ir::LoopKind kind = KindOf(*loop, scope.sizes);
    return body.SameHandle(loop->body) && kind == loop->kind ? s : ir::MakeFor(loop->var, loop->extent, kind, body);
  }
  return inside();
}

constexpr int64_t kPeeledIterationsMax = 2;  // iterations that are split off
constexpr int64_t kPeeledStoresMax = 64;     // stores in each of them, counting unrolled iterations

// Whether the expression uses the variable other than to find an element that it loads. Where an element is does not
// decide a comparison of its value.
bool UsesOutsideLoads(const ir::Expr& e, const std::string& var) {
  if (const ir::Var* v = e.As<ir::Var>()) return v->name == var;
  if (e.As<ir::Load>() != nullptr) return false;
  bool uses = false;
  ir::ForEachChild(e, [&](const ir::Expr& child) { uses = uses || UsesOutsideLoads(child, var); });
  return uses;
}

// Whether the statement contains a condition or mask that the variable decides.
bool HasConditionOn(const ir::Stmt& s, const std::string& var) {
  bool asks = false;
  const auto look = [&](const ir::Expr& condition) {
    asks = asks || (condition.defined() && UsesOutsideLoads(condition, var));
  };
  ir::ForEachExpr(s, [&](const ir::Expr& e) {
    if (const ir::Select* select = e.As<ir::Select>()) look(select->condition);
    if (const ir::Load* load = e.As<ir::Load>()) look(load->mask);
  });
  const std::function<void(const ir::Stmt&)> visit = [&](const ir::Stmt& child) {
    if (const ir::If* choice = child.As<ir::If>()) look(choice->condition);
    if (const ir::Store* store = child.As<ir::Store>()) look(store->mask);
    ir::ForEachChild(child, visit, [](const ir::Expr&) {});
  };
  visit(s);
  return asks;
}

// The number of stores, counting unrolled iterations. Above kPeeledStoresMax if the statement holds other loops, or
// statements other than stores.
int64_t CountStores(const ir::Stmt& s) {
  if (s.As<ir::Store>() != nullptr) return 1;
  int64_t copies = 1;
  if (const ir::For* loop = s.As<ir::For>()) {
    const ir::IntImm* extent = loop->extent.As<ir::IntImm>();
    const bool written_out = loop->kind == ir::LoopKind::kUnrolled;
    if (extent == nullptr || (!written_out && loop->kind != ir::LoopKind::kVectorized)) return kPeeledStoresMax + 1;
    if (written_out) copies = extent->value;
  } else if (s.As<ir::Block>() == nullptr && s.As<ir::If>() == nullptr) {
    return kPeeledStoresMax + 1;
  }
  int64_t stores = 0;
  ir::ForEachChild(s, [&](const ir::Stmt& child) { stores += CountStores(child); }, [](const ir::Expr&) {});
  return copies * stores;
}

// Splits off the last one or two iterations, whichever frees the others of conditions; undefined if neither does.
ir::Stmt PeelLastIterations(const ir::For& loop, int64_t extent, const ir::Ranges& ranges) {
  for (int64_t ends = 1; ends <= kPeeledIterationsMax && extent - ends >= 2; ++ends) {
    ir::Ranges first = ranges;
    first[loop.var] = {0, extent - ends - 1};
    const ir::Stmt body = ir::Simplify(loop.body, first);
    if (HasConditionOn(body, loop.var)) continue;
    std::vector<ir::Stmt> parts = {ir::MakeFor(loop.var, ir::Expr(extent - ends), loop.kind, body)};
    for (int64_t i = extent - ends; i < extent; ++i) {
      parts.push_back(ir::Simplify(ir::Substitute(loop.body, {{loop.var, ir::Expr(i)}}), ranges));
    }
    return ir::MakeBlock(std::move(parts));
  }
  return {};
}

// A loop over blocks of `step` elements, of which there are `end`: only the last block may be shorter.
struct Blocks {
  ir::Expr end;
  int64_t step;
};

// The blocks that the extent counts, if open sizes alone decide how many there are: (end + step - 1) // step.
std::optional<Blocks> AsBlocks(const ir::Expr& extent, const ir::Ranges& sizes) {
  const ir::Binary* quotient = extent.As<ir::Binary>();
  const bool divides = quotient != nullptr && quotient->op == ir::BinaryOp::kFloorDiv;
  const ir::IntImm* step = divides ? quotient->b.As<ir::IntImm>() : nullptr;
  if (step == nullptr || step->value < 2 || !UsesAny(extent, sizes) || !Bound(extent, sizes)) return std::nullopt;
  const ir::Expr end = ir::Simplify(quotient->a - ir::Expr(step->value - 1), sizes);
  if (ir::BoundsOf(end, sizes).low < 0) return std::nullopt;
  return Blocks{end, step->value};
}

// Replaces comparisons that hold for every element of the blocks before `end // step`. var: the loop over the blocks.
// Inside them, end - step * var is at least `step`.
ir::Expr WithinFullBlocks(const ir::Expr& e, const std::string& var, const Blocks& blocks, const ir::Ranges& ranges) {
  const ir::Expr mapped =
      ir::MapChildren(e, [&](const ir::Expr& child) { return WithinFullBlocks(child, var, blocks, ranges); });
  const ir::Binary* test = mapped.As<ir::Binary>();
  if (test == nullptr || test->a.type() != ir::kIndexType || !ir::UsesVar(mapped, var)) return mapped;
  const bool less = test->op == ir::BinaryOp::kLt || test->op == ir::BinaryOp::kLe;
  const bool greater = test->op == ir::BinaryOp::kGt || test->op == ir::BinaryOp::kGe;
  if (!less && !greater) return mapped;
  const ir::Expr apart = less ? test->b - test->a : test->a - test->b;
  const ir::Expr rest = apart - (blocks.end - ir::MakeVar(var) * ir::Expr(blocks.step));
  const int64_t low = ir::BoundsOf(rest, ranges).low;
  const int64_t least = test->op == ir::BinaryOp::kLt || test->op == ir::BinaryOp::kGt ? 1 : 0;
  if (low <= -ir::Interval::kUnbounded || low + blocks.step < least) return mapped;
  return ir::MakeBool(true);
}

ir::Stmt WithinFullBlocks(const ir::Stmt& s, const std::string& var, const Blocks& blocks, const ir::Ranges& ranges) {
  ir::Ranges inner = ranges;
  if (const ir::For* loop = s.As<ir::For>()) inner[loop->var] = {0, ir::BoundsOf(loop->extent, ranges).high - 1};
  return ir::MapChildren(
      s, [&](const ir::Stmt& child) { return WithinFullBlocks(child, var, blocks, inner); },
      [&](const ir::Expr& e) { return WithinFullBlocks(e, var, blocks, inner); });
}

// Splits off the last iteration of a loop over an open number of elements if the others are free of conditions then;
// undefined otherwise.
ir::Stmt PeelLastBlock(const ir::For& loop, const ir::Ranges& ranges, const ir::Ranges& sizes) {
  const auto blocks = AsBlocks(loop.extent, sizes);
  if (!blocks.has_value()) return {};
  const ir::Expr step(blocks->step), full = ir::Simplify(ir::FloorDiv(blocks->end, step), sizes);
  const int64_t most = ir::BoundsOf(full, sizes).high;
  if (most < 1) return {};
  ir::Ranges inner = ranges;
  inner[loop.var] = {0, most - 1};
  const ir::Stmt body = ir::Simplify(WithinFullBlocks(loop.body, loop.var, *blocks, inner), inner);
  if (HasConditionOn(body, loop.var)) return {};
  const ir::Stmt last = ir::Simplify(ir::Substitute(loop.body, {{loop.var, full}}), ranges);
  return ir::MakeBlock(
      {ir::MakeFor(loop.var, full, loop.kind, body), ir::MakeIf(ir::FloorMod(blocks->end, step) > ir::Expr(0), last)});
}

ir::Stmt PeelEndsIn(const ir::Stmt& s, const ir::Ranges& ranges, const ir::Ranges& sizes) {
  ir::Ranges inner = ranges;
  if (const ir::Let* let = s.As<ir::Let>()) inner[let->var] = ir::RangeOf(*let, ranges);
  const ir::For* loop = s.As<ir::For>();
  if (loop == nullptr) {
    return ir::MapChildren(
        s, [&](const ir::Stmt& child) { return PeelEndsIn(child, inner, sizes); }, [](const ir::Expr& e) { return e; });
  }
  const ir::IntImm* extent = loop->extent.As<ir::IntImm>();
  if (loop->kind == ir::LoopKind::kSerial && (extent != nullptr || !sizes.empty()) &&
      CountStores(loop->body) <= kPeeledStoresMax && HasConditionOn(loop->body, loop->var)) {
    const ir::Stmt peeled =
        extent != nullptr ? PeelLastIterations(*loop, extent->value, ranges) : PeelLastBlock(*loop, ranges, sizes);
    if (peeled.defined()) return peeled;
  }
  if (extent != nullptr) inner[loop->var] = {0, extent->value - 1};
  const ir::Stmt body = PeelEndsIn(loop->body, inner, sizes);
  return body.SameHandle(loop->body) ? s : ir::MakeFor(loop->var, loop->extent, loop->kind, body);
}

}  // namespace

ir::Stmt Peel(const ir::Stmt& s, const ir::Ranges& sizes) { return PeelIn(s, {sizes, sizes, {}}); }
ir::Stmt PeelEnds(const ir::Stmt& s, const ir::Ranges& sizes) {
  return PeelEndsIn(s, sizes, StaysWhole(s, sizes) ? ir::Ranges() : sizes);
}

}  // namespace hone::passes
