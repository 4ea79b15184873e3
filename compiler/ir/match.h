// SPDX-License-Identifier: Apache-2.0
// Pattern matching on the IR's variants, and rebuilding of one node: the tools of every pass.
//
// A pass is one recursive free function: it uses Match for the nodes it changes and MapChildren for the others.
// MapChildren returns the same handle if no child changed. Unchanged trees are thus shared, and SameHandle tells
// whether one changed.
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

// Match(e, [](const Load& l) {...}, [](const auto&) {...}). A missing case does not compile.
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

// Returns the node with f applied to each direct child, including defined masks and else cases.
Expr MapChildren(const Expr& e, const ExprFn& f);
// Applies expr_fn to direct expression children and stmt_fn to direct statement children.
Stmt MapChildren(const Stmt& s, const StmtFn& stmt_fn, const ExprFn& expr_fn);
// Calls f on each direct child.
void ForEachChild(const Expr& e, const std::function<void(const Expr&)>& f);
void ForEachChild(const Stmt& s, const std::function<void(const Stmt&)>& stmt_fn,
                  const std::function<void(const Expr&)>& expr_fn);
// Calls f on every expression inside s or e, including e itself, parents first.
void ForEachExpr(const Expr& e, const std::function<void(const Expr&)>& f);
void ForEachExpr(const Stmt& s, const std::function<void(const Expr&)>& f);

// Calls f for each Load in the expressions of the statement itself, nested ones too, but not for those of statements
// inside it.
void ForEachOwnLoad(const Stmt& s, const std::function<void(const Load&)>& f);

// Whether the predicate holds for s or any statement inside it.
bool AnyStmt(const Stmt& s, const std::function<bool(const Stmt&)>& holds);

using VarMap = std::map<std::string, Expr, std::less<>>;
// Replaces every Var that the map names by its expression.
Expr Substitute(const Expr& e, const VarMap& map);
Stmt Substitute(const Stmt& s, const VarMap& map);
bool UsesVar(const Expr& e, std::string_view name);
bool HasLoad(const Expr& e);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_MATCH_H_
