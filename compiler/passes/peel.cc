#include "compiler/passes/peel.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"

namespace hone::passes {
namespace {

using Names = std::set<std::string, std::less<>>;

// min(full, rest) in a loop extent, where rest is `tail` in the last tile and at least `full` before.
struct Minimum {
  ir::Expr expr, rest;
  int64_t full, tail;
};

std::optional<Minimum> AsMinimum(const ir::Expr& e) {
  const ir::Binary* m = e.As<ir::Binary>();
  if (m == nullptr || m->op != ir::BinaryOp::kMin) return std::nullopt;
  const bool left = m->a.As<ir::IntImm>() != nullptr;
  const ir::IntImm* full = left ? m->a.As<ir::IntImm>() : m->b.As<ir::IntImm>();
  if (full == nullptr || full->value <= 0) return std::nullopt;
  const ir::Expr rest = left ? m->b : m->a;
  const ir::Linear linear = ir::ToLinear(rest, {});
  for (const auto& [atom, k] : linear.terms) {
    if (k % full->value != 0) return std::nullopt;
  }
  const int64_t tail = ((linear.constant % full->value) + full->value) % full->value;
  if (tail == 0) return std::nullopt;
  return Minimum{e, rest, full->value, tail};
}

bool Bound(const ir::Expr& e, const Names& names) {
  bool bound = true;
  ir::ForEachExpr(e, [&](const ir::Expr& x) {
    if (const ir::Var* v = x.As<ir::Var>()) bound &= names.count(v->name) > 0;
  });
  return bound;
}

std::optional<Minimum> FindMinimum(const ir::Stmt& s, const Names& names) {
  std::optional<Minimum> found;
  if (const ir::For* loop = s.As<ir::For>()) {
    ir::ForEachExpr(loop->extent, [&](const ir::Expr& e) {
      if (found.has_value() || !Bound(e, names)) return;
      found = AsMinimum(e);
    });
  }
  ir::ForEachChild(
      s,
      [&](const ir::Stmt& child) {
        if (!found.has_value()) found = FindMinimum(child, names);
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

ir::Stmt PeelIn(const ir::Stmt& s, const Names& names) {
  if (const auto m = FindMinimum(s, names)) {
    return PeelIn(ir::MakeIf(m->rest >= ir::Expr(m->full), Replace(s, m->expr, ir::Expr(m->full)),
                             Replace(s, m->expr, ir::Expr(m->tail))),
                  names);
  }
  if (const ir::For* loop = s.As<ir::For>()) {
    Names inner = names;
    inner.insert(loop->var);
    const ir::Stmt body = PeelIn(loop->body, inner);
    return body.SameHandle(loop->body) ? s : ir::MakeFor(loop->var, loop->extent, loop->kind, body);
  }
  return ir::MapChildren(
      s, [&](const ir::Stmt& child) { return PeelIn(child, names); }, [](const ir::Expr& e) { return e; });
}

}  // namespace

ir::Stmt Peel(const ir::Stmt& s) { return PeelIn(s, {}); }

}  // namespace hone::passes
