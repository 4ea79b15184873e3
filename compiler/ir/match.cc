// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/match.h"

#include "base/status.h"

namespace hone::ir {
namespace {

// Applies f to every element. Returns whether a handle changed; *out is filled only in that case.
bool MapList(const std::vector<Expr>& list, const ExprFn& f, std::vector<Expr>* out) {
  bool changed = false;
  for (size_t i = 0; i < list.size(); ++i) {
    Expr mapped = f(list[i]);
    if (!changed && !mapped.SameHandle(list[i])) {
      changed = true;
      out->assign(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (changed) out->push_back(std::move(mapped));
  }
  if (!changed) *out = list;
  return changed;
}

Expr MapLoad(const Expr& e, const Load& load, const ExprFn& f) {
  std::vector<Expr> indices;
  bool changed = MapList(load.indices, f, &indices);
  Expr mask = load.mask.defined() ? f(load.mask) : Expr();
  changed |= !mask.SameHandle(load.mask);
  return changed ? MakeLoad(load.buffer, std::move(indices), std::move(mask)) : e;
}

Stmt MapStore(const Stmt& s, const Store& store, const ExprFn& f) {
  std::vector<Expr> indices;
  bool changed = MapList(store.indices, f, &indices);
  Expr value = f(store.value);
  Expr mask = store.mask.defined() ? f(store.mask) : Expr();
  changed |= !value.SameHandle(store.value) || !mask.SameHandle(store.mask);
  return changed ? MakeStore(store.buffer, std::move(indices), std::move(value), std::move(mask)) : s;
}

Stmt MapMma(const Stmt& s, const Mma& mma, const ExprFn& f) {
  Mma mapped = mma;
  bool changed = false;
  for (MatrixOperand* operand : {&mapped.sum, &mapped.a, &mapped.b}) {
    Expr first = f(operand->first);
    changed |= !first.SameHandle(operand->first);
    operand->first = std::move(first);
  }
  return changed ? MakeMma(mapped.instruction, mapped.sum, mapped.a, mapped.b) : s;
}

Stmt MapCopy(const Stmt& s, const Copy& copy, const ExprFn& f) {
  std::vector<Expr> indices;
  bool changed = MapList(copy.indices, f, &indices);
  Expr source = f(copy.source);
  Expr mask = copy.mask.defined() ? f(copy.mask) : Expr();
  changed |= !source.SameHandle(copy.source) || !mask.SameHandle(copy.mask);
  if (!changed) return s;
  return MakeCopy(copy.buffer, std::move(indices), std::move(source), std::move(mask), copy.count, copy.groups);
}

Stmt MapLaneReduce(const Stmt& s, const LaneReduce& reduce, const ExprFn& f) {
  LaneReduce mapped = reduce;
  bool changed = false;
  for (Expr* e : {&mapped.place, &mapped.mask, &mapped.part, &mapped.value}) {
    if (!e->defined()) continue;
    const Expr before = *e;
    *e = f(before);
    changed |= !e->SameHandle(before);
  }
  return changed ? MakeLaneReduce(std::move(mapped)) : s;
}

Stmt MapBlock(const Stmt& s, const Block& block, const StmtFn& f) {
  std::vector<Stmt> stmts;
  stmts.reserve(block.stmts.size());
  bool changed = false;
  for (const Stmt& child : block.stmts) {
    stmts.push_back(f(child));
    changed |= !stmts.back().SameHandle(child);
  }
  return changed ? MakeBlock(std::move(stmts), block.name) : s;
}

}  // namespace

Expr MapChildren(const Expr& e, const ExprFn& f) {
  return Match(
      e, [&](const IntImm&) { return e; }, [&](const FloatImm&) { return e; }, [&](const Var&) { return e; },
      [&](const Cast& n) {
        Expr value = f(n.value);
        if (value.SameHandle(n.value)) return e;
        const int width = value.type().width;
        return MakeCast(n.type.WithWidth(width), std::move(value));
      },
      [&](const Unary& n) {
        Expr a = f(n.a);
        return a.SameHandle(n.a) ? e : MakeUnary(n.op, std::move(a));
      },
      [&](const Binary& n) {
        Expr a = f(n.a), b = f(n.b);
        return a.SameHandle(n.a) && b.SameHandle(n.b) ? e : MakeBinary(n.op, std::move(a), std::move(b));
      },
      [&](const Select& n) {
        Expr c = f(n.condition), t = f(n.on_true), o = f(n.on_false);
        if (c.SameHandle(n.condition) && t.SameHandle(n.on_true) && o.SameHandle(n.on_false)) return e;
        return MakeSelect(std::move(c), std::move(t), std::move(o));
      },
      [&](const Load& n) { return MapLoad(e, n, f); },
      [&](const Call& n) {
        std::vector<Expr> args;
        if (!MapList(n.args, f, &args)) return e;
        const int width = args[0].type().width;
        return MakeCall(n.type.WithWidth(width), n.function, std::move(args));
      },
      [&](const Ramp& n) {
        Expr base = f(n.base), stride = f(n.stride);
        if (base.SameHandle(n.base) && stride.SameHandle(n.stride)) return e;
        return MakeRamp(std::move(base), std::move(stride), n.width);
      },
      [&](const Broadcast& n) {
        Expr value = f(n.value);
        return value.SameHandle(n.value) ? e : MakeBroadcast(std::move(value), n.width);
      });
}

Stmt MapChildren(const Stmt& s, const StmtFn& stmt_fn, const ExprFn& expr_fn) {
  return Match(
      s,
      [&](const For& n) {
        Expr extent = expr_fn(n.extent);
        Stmt body = stmt_fn(n.body);
        if (extent.SameHandle(n.extent) && body.SameHandle(n.body)) return s;
        return MakeFor(n.var, std::move(extent), n.kind, std::move(body));
      },
      [&](const Store& n) { return MapStore(s, n, expr_fn); }, [&](const Block& n) { return MapBlock(s, n, stmt_fn); },
      [&](const If& n) {
        Expr condition = expr_fn(n.condition);
        Stmt then_case = stmt_fn(n.then_case);
        Stmt else_case = n.else_case.defined() ? stmt_fn(n.else_case) : Stmt();
        const bool same =
            condition.SameHandle(n.condition) && then_case.SameHandle(n.then_case) && else_case.SameHandle(n.else_case);
        return same ? s : MakeIf(std::move(condition), std::move(then_case), std::move(else_case));
      },
      [&](const Alloc& n) {
        Stmt body = stmt_fn(n.body);
        return body.SameHandle(n.body) ? s : MakeAlloc(n.buffer, std::move(body));
      },
      [&](const Let& n) {
        Expr value = expr_fn(n.value);
        Stmt body = stmt_fn(n.body);
        if (value.SameHandle(n.value) && body.SameHandle(n.body)) return s;
        return MakeLet(n.var, std::move(value), std::move(body));
      },
      [&](const Barrier&) { return s; }, [&](const Mma& n) { return MapMma(s, n, expr_fn); },
      [&](const MmaWait&) { return s; }, [&](const Copy& n) { return MapCopy(s, n, expr_fn); },
      [&](const Commit&) { return s; }, [&](const Wait&) { return s; },
      [&](const LaneReduce& n) { return MapLaneReduce(s, n, expr_fn); },
      [&](const Prefetch& n) {
        Expr first = expr_fn(n.first);
        return first.SameHandle(n.first) ? s : MakePrefetch(n.buffer, std::move(first), n.count);
      });
}

void ForEachChild(const Expr& e, const std::function<void(const Expr&)>& f) {
  const auto each = [&](const std::vector<Expr>& list) {
    for (const Expr& child : list) f(child);
  };
  Match(
      e, [](const IntImm&) {}, [](const FloatImm&) {}, [](const Var&) {}, [&](const Cast& n) { f(n.value); },
      [&](const Unary& n) { f(n.a); },
      [&](const Binary& n) {
        f(n.a);
        f(n.b);
      },
      [&](const Select& n) {
        f(n.condition);
        f(n.on_true);
        f(n.on_false);
      },
      [&](const Load& n) {
        each(n.indices);
        if (n.mask.defined()) f(n.mask);
      },
      [&](const Call& n) { each(n.args); },
      [&](const Ramp& n) {
        f(n.base);
        f(n.stride);
      },
      [&](const Broadcast& n) { f(n.value); });
}

void ForEachChild(const Stmt& s, const std::function<void(const Stmt&)>& stmt_fn,
                  const std::function<void(const Expr&)>& expr_fn) {
  Match(
      s,
      [&](const For& n) {
        expr_fn(n.extent);
        stmt_fn(n.body);
      },
      [&](const Store& n) {
        for (const Expr& index : n.indices) expr_fn(index);
        expr_fn(n.value);
        if (n.mask.defined()) expr_fn(n.mask);
      },
      [&](const Block& n) {
        for (const Stmt& child : n.stmts) stmt_fn(child);
      },
      [&](const If& n) {
        expr_fn(n.condition);
        stmt_fn(n.then_case);
        if (n.else_case.defined()) stmt_fn(n.else_case);
      },
      [&](const Alloc& n) { stmt_fn(n.body); },
      [&](const Let& n) {
        expr_fn(n.value);
        stmt_fn(n.body);
      },
      [](const Barrier&) {},
      [&](const Mma& n) {
        expr_fn(n.sum.first);
        expr_fn(n.a.first);
        expr_fn(n.b.first);
      },
      [](const MmaWait&) {},
      [&](const Copy& n) {
        for (const Expr& index : n.indices) expr_fn(index);
        expr_fn(n.source);
        if (n.mask.defined()) expr_fn(n.mask);
      },
      [](const Commit&) {}, [](const Wait&) {},
      [&](const LaneReduce& n) {
        expr_fn(n.place);
        if (n.mask.defined()) expr_fn(n.mask);
        expr_fn(n.part);
        expr_fn(n.value);
      },
      [&](const Prefetch& n) { expr_fn(n.first); });
}

void ForEachExpr(const Expr& e, const std::function<void(const Expr&)>& f) {
  f(e);
  ForEachChild(e, [&](const Expr& child) { ForEachExpr(child, f); });
}

void ForEachExpr(const Stmt& s, const std::function<void(const Expr&)>& f) {
  ForEachChild(s, [&](const Stmt& child) { ForEachExpr(child, f); }, [&](const Expr& e) { ForEachExpr(e, f); });
}

void ForEachOwnLoad(const Stmt& s, const std::function<void(const Load&)>& f) {
  const auto visit = [&f](const Expr& e) {
    if (const Load* load = e.As<Load>()) f(*load);
  };
  ForEachChild(s, [](const Stmt&) {}, [&visit](const Expr& child) { ForEachExpr(child, visit); });
}

bool AnyStmt(const Stmt& s, const std::function<bool(const Stmt&)>& holds) {
  bool found = holds(s);
  ForEachChild(s, [&](const Stmt& child) { found = found || AnyStmt(child, holds); }, [](const Expr&) {});
  return found;
}

Expr Substitute(const Expr& e, const VarMap& map) {
  if (map.empty()) return e;
  if (const Var* var = e.As<Var>()) {
    const auto found = map.find(var->name);
    return found == map.end() ? e : found->second;
  }
  return MapChildren(e, [&](const Expr& child) { return Substitute(child, map); });
}

Stmt Substitute(const Stmt& s, const VarMap& map) {
  if (map.empty()) return s;
  return MapChildren(
      s, [&](const Stmt& child) { return Substitute(child, map); }, [&](const Expr& e) { return Substitute(e, map); });
}

bool UsesVar(const Expr& e, std::string_view name) {
  if (const Var* var = e.As<Var>()) return var->name == name;
  bool used = false;
  ForEachChild(e, [&](const Expr& child) { used = used || UsesVar(child, name); });
  return used;
}

bool HasLoad(const Expr& e) {
  bool found = false;
  ForEachExpr(e, [&](const Expr& x) { found = found || x.As<Load>() != nullptr; });
  return found;
}

}  // namespace hone::ir
