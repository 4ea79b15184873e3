// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
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

std::optional<Minimum> FindMinimum(const ir::Stmt& s, const ir::Ranges& ranges, const ir::Ranges& sizes) {
  std::optional<Minimum> found;
  if (const ir::For* loop = s.As<ir::For>()) {
    ir::ForEachExpr(loop->extent, [&](const ir::Expr& e) {
      if (found.has_value() || !Bound(e, ranges)) return;
      found = AsMinimum(e, ranges, sizes);
      if (found.has_value() && !found->tail.defined() && !IsWrittenOut(loop->kind)) found.reset();
    });
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

// The statement where rest is less than full, and an open size decides rest. Loops that are written out keep their full
// length, and a condition leaves out the iterations behind the end; others are shorter.
ir::Stmt MaskTail(const ir::Stmt& s, const Minimum& m) {
  const auto rest = [&](const ir::Expr& e) { return Replace(e, m.expr, m.rest); };
  const ir::For* loop = s.As<ir::For>();
  if (loop == nullptr || !IsWrittenOut(loop->kind) || !Contains(loop->extent, m.expr)) {
    return ir::MapChildren(s, [&](const ir::Stmt& child) { return MaskTail(child, m); }, rest);
  }
  const ir::Expr full = ir::Simplify(Replace(loop->extent, m.expr, ir::Expr(m.full)));
  return ir::MakeFor(loop->var, full, loop->kind,
                     ir::MakeIf(ir::MakeVar(loop->var) < rest(loop->extent), MaskTail(loop->body, m)));
}

// min(n // c, 1) of open sizes alone: whether n is at least c. The schedule makes the length of tiles of it.
ir::Expr AsChoice(const ir::Expr& e, const ir::Ranges& sizes) {
  const ir::Binary* m = e.As<ir::Binary>();
  if (m == nullptr || m->op != ir::BinaryOp::kMin || !Bound(e, sizes)) return {};
  const ir::IntImm* left = m->a.As<ir::IntImm>();
  const ir::IntImm* one = left != nullptr ? left : m->b.As<ir::IntImm>();
  const ir::Binary* quotient = (left != nullptr ? m->b : m->a).As<ir::Binary>();
  if (one == nullptr || one->value != 1 || quotient == nullptr || quotient->op != ir::BinaryOp::kFloorDiv) return {};
  return quotient->b.As<ir::IntImm>() != nullptr ? e : ir::Expr();
}

// n // c in the choice min(n // c, 1).
const ir::Binary* QuotientOf(const ir::Expr& choice) {
  const ir::Binary* m = choice.As<ir::Binary>();
  return (m->a.As<ir::IntImm>() != nullptr ? m->b : m->a).As<ir::Binary>();
}

// The statement where the choice has the value, 0 or 1. Choices between more or fewer of the same n follow from it.
ir::Stmt Decide(const ir::Stmt& s, const ir::Expr& choice, int64_t value, const ir::Ranges& sizes) {
  const ir::Binary* decided = QuotientOf(choice);
  const int64_t least = decided->b.As<ir::IntImm>()->value;
  const std::function<ir::Expr(const ir::Expr&)> decide = [&](const ir::Expr& e) -> ir::Expr {
    if (AsChoice(e, sizes).defined()) {
      const ir::Binary* quotient = QuotientOf(e);
      const int64_t other = quotient->b.As<ir::IntImm>()->value;
      const bool follows = ir::Equal(quotient->a, decided->a) && (value == 1 ? other <= least : other >= least);
      if (follows) return ir::Expr(value);
    }
    return ir::MapChildren(e, decide);
  };
  const std::function<ir::Stmt(const ir::Stmt&)> visit = [&](const ir::Stmt& child) {
    return ir::MapChildren(child, visit, decide);
  };
  return visit(s);
}

// The ranges where the choice min(n // c, 1) has the value, 0 or 1.
ir::Ranges WithChoice(ir::Ranges ranges, const ir::Expr& choice, int64_t value) {
  const ir::Binary* quotient = QuotientOf(choice);
  const ir::Var* n = quotient->a.As<ir::Var>();
  const auto range = n == nullptr ? ranges.end() : ranges.find(n->name);
  if (range == ranges.end()) return ranges;
  const int64_t least = quotient->b.As<ir::IntImm>()->value;
  if (value == 1) range->second.low = std::max(range->second.low, least);
  if (value == 0) range->second.high = std::min(range->second.high, least - 1);
  return ranges;
}

// A choice in the extent of a loop; undefined if there is none.
ir::Expr FindChoice(const ir::Stmt& s, const ir::Ranges& sizes) {
  ir::Expr found;
  if (sizes.empty()) return found;
  if (const ir::For* loop = s.As<ir::For>()) {
    ir::ForEachExpr(loop->extent, [&](const ir::Expr& e) {
      if (!found.defined()) found = AsChoice(e, sizes);
    });
  }
  ir::ForEachChild(
      s,
      [&](const ir::Stmt& child) {
        if (!found.defined()) found = FindChoice(child, sizes);
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

// ranges: those of the loop variables in scope and of the open sizes.
ir::Stmt PeelIn(const ir::Stmt& s, const ir::Ranges& ranges, const ir::Ranges& sizes) {
  const bool whole = StaysWhole(s, sizes);
  if (const ir::Expr choice = whole ? ir::Expr() : FindChoice(s, sizes); choice.defined()) {
    const auto version = [&](int64_t value) {
      const ir::Ranges own_sizes = WithChoice(sizes, choice, value), own = WithChoice(ranges, choice, value);
      return PeelIn(ir::Simplify(Decide(s, choice, value, sizes), own), own, own_sizes);
    };
    return ir::MakeIf(ir::Equals(choice, ir::Expr(1)), version(1), version(0));
  }
  if (const auto m = whole ? std::nullopt : FindMinimum(s, ranges, sizes)) {
    return PeelIn(ir::MakeIf(m->rest >= ir::Expr(m->full), Replace(s, m->expr, ir::Expr(m->full)),
                             m->tail.defined() ? Replace(s, m->expr, m->tail) : MaskTail(s, *m)),
                  ranges, sizes);
  }
  if (const ir::For* loop = s.As<ir::For>()) {
    ir::Ranges inner = ranges;
    inner[loop->var] = {0, ir::BoundsOf(loop->extent, ranges).high - 1};
    const ir::Stmt body = PeelIn(loop->body, inner, sizes);
    const ir::LoopKind kind = KindOf(*loop, sizes);
    return body.SameHandle(loop->body) && kind == loop->kind ? s : ir::MakeFor(loop->var, loop->extent, kind, body);
  }
  return ir::MapChildren(
      s, [&](const ir::Stmt& child) { return PeelIn(child, ranges, sizes); }, [](const ir::Expr& e) { return e; });
}

constexpr int64_t kPeeledIterationsMax = 2;  // iterations that are split off
constexpr int64_t kPeeledStoresMax = 64;     // stores in each of them, counting unrolled iterations

// Whether the statement contains a condition or mask that uses the variable.
bool HasConditionOn(const ir::Stmt& s, const std::string& var) {
  bool asks = false;
  const auto look = [&](const ir::Expr& condition) {
    asks = asks || (condition.defined() && ir::UsesVar(condition, var));
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

ir::Stmt PeelEndsIn(const ir::Stmt& s, const ir::Ranges& ranges) {
  ir::Ranges inner = ranges;
  if (const ir::Let* let = s.As<ir::Let>()) inner[let->var] = ir::RangeOf(*let, ranges);
  const ir::For* loop = s.As<ir::For>();
  if (loop == nullptr) {
    return ir::MapChildren(
        s, [&](const ir::Stmt& child) { return PeelEndsIn(child, inner); }, [](const ir::Expr& e) { return e; });
  }
  const ir::IntImm* extent = loop->extent.As<ir::IntImm>();
  if (extent != nullptr && loop->kind == ir::LoopKind::kSerial && CountStores(loop->body) <= kPeeledStoresMax &&
      HasConditionOn(loop->body, loop->var)) {
    if (const ir::Stmt peeled = PeelLastIterations(*loop, extent->value, ranges); peeled.defined()) return peeled;
  }
  if (extent != nullptr) inner[loop->var] = {0, extent->value - 1};
  const ir::Stmt body = PeelEndsIn(loop->body, inner);
  return body.SameHandle(loop->body) ? s : ir::MakeFor(loop->var, loop->extent, loop->kind, body);
}

}  // namespace

ir::Stmt Peel(const ir::Stmt& s, const ir::Ranges& sizes) { return PeelIn(s, sizes, sizes); }
ir::Stmt PeelEnds(const ir::Stmt& s, const ir::Ranges& sizes) { return PeelEndsIn(s, sizes); }

}  // namespace hone::passes
