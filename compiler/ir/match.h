// SPDX-License-Identifier: Apache-2.0
// Match over the IR's variants and one-level rebuilding: what every pass is written with.
//
// A pass is one recursive free function: Match on the nodes it changes, MapChildren for the others. MapChildren
// returns the same handle when no child changed, so unchanged trees are shared and "did it change" is SameHandle.
#ifndef HONE_COMPILER_IR_MATCH_H_
#define HONE_COMPILER_IR_MATCH_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"

namespace hone::ir {

template <typename... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overload(Fs...) -> Overload<Fs...>;

// Match(e, [](const Load& l) {...}, [](const auto&) {...}); a missing case does not compile.
template <typename... Fs>
decltype(auto) Match(const Expr& e, Fs&&... fs) {
  return std::visit(Overload{std::forward<Fs>(fs)...}, e.node().value);
}
template <typename... Fs>
decltype(auto) Match(const Stmt& s, Fs&&... fs) {
  return std::visit(Overload{std::forward<Fs>(fs)...}, s.node().value);
}

using ExprFn = std::function<Expr(const Expr&)>;
using StmtFn = std::function<Stmt(const Stmt&)>;

// The node with f applied to each direct child (defined masks and else cases included).
Expr MapChildren(const Expr& e, const ExprFn& f);
// expr_fn on direct expression children, stmt_fn on direct statement children.
Stmt MapChildren(const Stmt& s, const StmtFn& stmt_fn, const ExprFn& expr_fn);
// f on each direct child, for reading.
void ForEachChild(const Expr& e, const std::function<void(const Expr&)>& f);
void ForEachChild(const Stmt& s, const std::function<void(const Stmt&)>& stmt_fn,
                  const std::function<void(const Expr&)>& expr_fn);
// f on every expression below s or e, e itself included, parents first.
void ForEachExpr(const Expr& e, const std::function<void(const Expr&)>& f);
void ForEachExpr(const Stmt& s, const std::function<void(const Expr&)>& f);

// Whether it holds for s or any statement inside it.
bool AnyStmt(const Stmt& s, const std::function<bool(const Stmt&)>& holds);

using VarMap = std::map<std::string, Expr, std::less<>>;
// Every Var named in the map replaced by its expression.
Expr Substitute(const Expr& e, const VarMap& map);
Stmt Substitute(const Stmt& s, const VarMap& map);
bool UsesVar(const Expr& e, std::string_view name);
bool HasLoad(const Expr& e);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_MATCH_H_
