// SPDX-License-Identifier: Apache-2.0
// The legality of one expression in its scope: what the verifiers of Func and Workload share.
//
// Re-derives every node's type from its children, so that a node built without the Make* functions is caught too.
// Not here: the rules of statements (verify.cc) and of stages (verify_workload.cc).
#ifndef HONE_COMPILER_IR_EXPR_CHECKER_H_
#define HONE_COMPILER_IR_EXPR_CHECKER_H_

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

#include "absl/status/status.h"
#include "compiler/ir/expr.h"

namespace hone::ir {

class ExprChecker {
 public:
  // Workloads are scalar and load with one index per dimension; Funcs may hold vectors, masks and flat indices.
  enum class Dialect : uint8_t { kFunc, kWorkload };
  explicit ExprChecker(Dialect dialect) : dialect_(dialect) {}

  absl::Status Check(const Expr& e) const;
  // The shared rules of Load and Store; `what` is "load" or "store".
  absl::Status CheckAccess(std::string_view what, const Buffer& buffer, const std::vector<Expr>& indices,
                           const Expr& mask) const;

  std::map<std::string, Type, std::less<>> vars;  // in scope
  std::unordered_set<const BufferNode*> buffers;  // in scope

 private:
  absl::Status CheckNode(const Expr& e) const;

  Dialect dialect_;
};

// float16 and bfloat16 may be loaded, selected, cast and inspected, not computed with, as an operator, a function or a
// ramp does.
bool ComputesInStorageType(const Expr& e);

// InvalidArgument naming the expression, cut to a readable length.
absl::Status IllegalExpr(const Expr& e, std::string_view message);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_EXPR_CHECKER_H_
