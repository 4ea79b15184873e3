// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"

namespace hone::passes {
namespace {

// A register tile has some hundred stores. Far more only cost compile time and instruction cache.
constexpr int64_t kUnrolledStatementsMax = 4096;

bool IsLeaf(const ir::Stmt& s) {
  bool leaf = true;
  ir::ForEachChild(s, [&](const ir::Stmt&) { leaf = false; }, [](const ir::Expr&) {});
  return leaf;
}

struct Unroller {
  absl::Status status;
  int64_t statements = 0;

  ir::Stmt Run(const ir::Stmt& s, int64_t copies) {
    if (!status.ok()) return s;
    const ir::For* loop = s.As<ir::For>();
    if (IsLeaf(s)) statements += copies;
    if (statements > kUnrolledStatementsMax) {
      status = absl::FailedPreconditionError("unrolled loops repeat more than 4096 statements");
      return s;
    }
    if (loop == nullptr || loop->kind != ir::LoopKind::kUnrolled) {
      return ir::MapChildren(
          s, [&](const ir::Stmt& child) { return Run(child, copies); }, [](const ir::Expr& e) { return e; });
    }
    const ir::IntImm* extent = loop->extent.As<ir::IntImm>();
    if (extent == nullptr) {
      status = absl::FailedPreconditionError(
          fmt::format("unrolled loop {} has no constant extent: {}", loop->var, ir::Print(loop->extent)));
      return s;
    }
    if (extent->value <= 0) return ir::MakeBlock({});
    // Both factors are bounded, so that the product cannot overflow.
    const int64_t repeated =
        std::min(copies * std::min(extent->value, kUnrolledStatementsMax + 1), kUnrolledStatementsMax + 1);
    const ir::Stmt body = Run(loop->body, repeated);
    if (!status.ok()) return s;
    std::vector<ir::Stmt> stmts;
    for (int64_t i = 0; i < extent->value; ++i) stmts.push_back(ir::Substitute(body, {{loop->var, ir::Expr(i)}}));
    return ir::MakeBlock(std::move(stmts));
  }
};

}  // namespace

absl::StatusOr<ir::Stmt> Unroll(const ir::Stmt& s) {
  Unroller unroller;
  const ir::Stmt result = unroller.Run(s, 1);
  if (!unroller.status.ok()) return unroller.status;
  return result;
}

}  // namespace hone::passes
