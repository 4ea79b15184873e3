// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/match.h"
#include "compiler/passes/passes.h"

namespace hone::passes {
namespace {

using Names = std::set<std::string>;

// The variables that the statement and those inside it bind.
Names BoundIn(const ir::Stmt& s) {
  Names names;
  ir::AnyStmt(s, [&](const ir::Stmt& child) {
    if (const ir::For* loop = child.As<ir::For>()) names.insert(loop->var);
    if (const ir::Let* let = child.As<ir::Let>()) names.insert(let->var);
    return false;
  });
  return names;
}

bool UsesOneOf(const ir::Expr& e, const Names& names) {
  bool uses = false;
  ir::ForEachExpr(e, [&](const ir::Expr& part) {
    const ir::Var* v = part.As<ir::Var>();
    uses = uses || (v != nullptr && names.contains(v->name));
  });
  return uses;
}

// Whether the expression divides an index by one that is no number.
bool IsOpenDivision(const ir::Expr& e) {
  const ir::Binary* b = e.As<ir::Binary>();
  const bool divides = b != nullptr && (b->op == ir::BinaryOp::kFloorDiv || b->op == ir::BinaryOp::kFloorMod);
  return divides && e.type() == ir::kIndexType && b->b.As<ir::IntImm>() == nullptr && !ir::HasLoad(e);
}

class Hoister {
 public:
  explicit Hoister(const ir::Stmt& s) : taken_(BoundIn(s)) {}

  ir::Stmt Run(const ir::Stmt& s) {
    const ir::For* loop = s.As<ir::For>();
    if (loop == nullptr) {
      return ir::MapChildren(s, [&](const ir::Stmt& child) { return Run(child); }, [](const ir::Expr& e) { return e; });
    }
    Quotients quotients;
    ir::Stmt body = Run(Replace(loop->body, loop->var, BoundIn(loop->body), &quotients));
    for (size_t i = quotients.size(); i-- > 0;) {
      body = ir::MakeLet(quotients[i].first, quotients[i].second, std::move(body));
    }
    return body.SameHandle(loop->body) ? s : ir::MakeFor(loop->var, loop->extent, loop->kind, std::move(body));
  }

 private:
  using Quotients = std::vector<std::pair<std::string, ir::Expr>>;  // variables and their values, in order

  // Replaces the divisions that do not use the variables `inner` by variables.
  ir::Expr Replace(const ir::Expr& e, const std::string& loop, const Names& inner, Quotients* quotients) {
    const ir::Expr mapped =
        ir::MapChildren(e, [&](const ir::Expr& child) { return Replace(child, loop, inner, quotients); });
    if (!IsOpenDivision(mapped) || UsesOneOf(mapped, inner)) return mapped;
    auto known =
        std::ranges::find_if(*quotients, [&](const auto& quotient) { return ir::Equal(quotient.second, mapped); });
    if (known == quotients->end()) known = quotients->insert(known, {NewName(loop), mapped});
    return ir::MakeVar(known->first);
  }
  ir::Stmt Replace(const ir::Stmt& s, const std::string& loop, const Names& inner, Quotients* quotients) {
    return ir::MapChildren(
        s, [&](const ir::Stmt& child) { return Replace(child, loop, inner, quotients); },
        [&](const ir::Expr& e) { return Replace(e, loop, inner, quotients); });
  }

  std::string NewName(const std::string& loop) {
    std::string name;
    do {
      name = fmt::format("{}_q{}", loop, count_++);
    } while (!taken_.insert(name).second);
    return name;
  }

  Names taken_;
  int count_ = 0;
};

}  // namespace

ir::Stmt HoistDivisions(const ir::Stmt& s) { return Hoister(s).Run(s); }

}  // namespace hone::passes
