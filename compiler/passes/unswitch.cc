// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "compiler/ir/match.h"
#include "compiler/passes/passes.h"

namespace hone::passes {
namespace {

constexpr int kConditionalAccessesMin = 8;  // in a loop's body; fewer cost less than a second copy of the body

// Conditions on indices, each once.
struct UniformConditions {
  std::vector<ir::Expr> all;
  int accesses = 0;  // how many loads, stores and statements ask one

  // Adds the parts of a condition that are the same for all elements of a vector.
  void Add(const ir::Expr& condition) { accesses += Collect(condition) ? 1 : 0; }

 private:
  bool Collect(const ir::Expr& condition) {
    if (const ir::Broadcast* same = condition.As<ir::Broadcast>()) return Collect(same->value);
    const ir::Binary* binary = condition.As<ir::Binary>();
    if (binary == nullptr) return false;
    if (binary->op == ir::BinaryOp::kAnd) {
      const bool a = Collect(binary->a), b = Collect(binary->b);
      return a || b;
    }
    if (condition.type() != ir::kBoolType || binary->a.type() != ir::kIndexType || ir::HasLoad(condition)) return false;
    const auto is_known = [&](const ir::Expr& known) { return ir::Equal(known, condition); };
    if (std::ranges::none_of(all, is_known)) all.push_back(condition);
    return true;
  }
};

UniformConditions ConditionsIn(const ir::Stmt& s) {
  UniformConditions conditions;
  ir::ForEachExpr(s, [&](const ir::Expr& e) {
    const ir::Load* load = e.As<ir::Load>();
    if (load != nullptr && load->mask.defined()) conditions.Add(load->mask);
  });
  ir::AnyStmt(s, [&](const ir::Stmt& child) {
    const ir::Store* store = child.As<ir::Store>();
    const ir::If* branch = child.As<ir::If>();
    if (store != nullptr && store->mask.defined()) conditions.Add(store->mask);
    if (branch != nullptr) conditions.Add(branch->condition);
    return false;
  });
  return conditions;
}

bool IsTrue(const ir::Expr& e) {
  if (const ir::Broadcast* same = e.As<ir::Broadcast>()) return IsTrue(same->value);
  const ir::IntImm* value = e.As<ir::IntImm>();
  return value != nullptr && e.type().dtype == ir::DType::kBool && value->value != 0;
}

// The expression or statement where all of the conditions hold.
ir::Expr Where(const std::vector<ir::Expr>& conditions, const ir::Expr& e) {
  if (std::ranges::any_of(conditions, [&](const ir::Expr& c) { return ir::Equal(c, e); })) return ir::MakeBool(true);
  const ir::Expr mapped = ir::MapChildren(e, [&](const ir::Expr& child) { return Where(conditions, child); });
  if (const ir::Load* load = mapped.As<ir::Load>(); load != nullptr && load->mask.defined() && IsTrue(load->mask)) {
    return ir::MakeLoad(load->buffer, load->indices);
  }
  const ir::Binary* both = mapped.As<ir::Binary>();
  if (both == nullptr || both->op != ir::BinaryOp::kAnd) return mapped;
  return IsTrue(both->a) ? both->b : IsTrue(both->b) ? both->a : mapped;
}
ir::Stmt Where(const std::vector<ir::Expr>& conditions, const ir::Stmt& s) {
  const ir::Stmt mapped = ir::MapChildren(
      s, [&](const ir::Stmt& child) { return Where(conditions, child); },
      [&](const ir::Expr& e) { return Where(conditions, e); });
  if (const ir::If* branch = mapped.As<ir::If>(); branch != nullptr && IsTrue(branch->condition)) {
    return branch->then_case;
  }
  const ir::Store* store = mapped.As<ir::Store>();
  if (store == nullptr || !store->mask.defined() || !IsTrue(store->mask)) return mapped;
  return ir::MakeStore(store->buffer, store->indices, store->value);
}

bool IsLoop(const ir::Stmt& s) { return s.As<ir::For>() != nullptr; }
bool BindsVariable(const ir::Stmt& s) { return s.As<ir::Let>() != nullptr; }

// Asks all conditions of an innermost loop at once: before it, or in each iteration if its variable decides one.
ir::Stmt UnswitchLoop(const ir::Stmt& s, const ir::For& loop) {
  const UniformConditions conditions = ConditionsIn(loop.body);
  if (conditions.accesses < kConditionalAccessesMin) return s;
  ir::Expr all = conditions.all[0];
  for (size_t i = 1; i < conditions.all.size(); ++i) all = all && conditions.all[i];
  const ir::Stmt inside = Where(conditions.all, loop.body);
  if (ir::UsesVar(all, loop.var)) {
    return ir::MakeFor(loop.var, loop.extent, loop.kind, ir::MakeIf(all, inside, loop.body));
  }
  return ir::MakeIf(all, ir::MakeFor(loop.var, loop.extent, loop.kind, inside), s);
}

}  // namespace

ir::Stmt Unswitch(const ir::Stmt& s) {
  const ir::For* loop = s.As<ir::For>();
  const bool innermost = loop != nullptr && loop->kind == ir::LoopKind::kSerial && !ir::AnyStmt(loop->body, IsLoop) &&
                         !ir::AnyStmt(loop->body, BindsVariable);
  if (innermost) return UnswitchLoop(s, *loop);
  return ir::MapChildren(s, Unswitch, [](const ir::Expr& e) { return e; });
}

}  // namespace hone::passes
