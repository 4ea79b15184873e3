// SPDX-License-Identifier: Apache-2.0
// The rules for one expression in its scope. Shared by the verifiers of Func and Workload.
//
// Derives every node's type again from its children, so that a node built without the Make* functions is caught too.
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
  // Workload expressions are scalar, and loads have one index per dimension. A Func may also use vectors, masks and
  // flat indices.
  enum class Dialect : uint8_t { kFunc, kWorkload };
  explicit ExprChecker(Dialect dialect) : dialect_(dialect) {}

  absl::Status Check(const Expr& e) const;
  // Checks the rules common to loads and stores. what: "load" or "store", for the error text.
  absl::Status CheckAccess(std::string_view what, const Buffer& buffer, const std::vector<Expr>& indices,
                           const Expr& mask) const;

  std::map<std::string, Type, std::less<>> vars;  // in scope
  std::unordered_set<const BufferNode*> buffers;  // in scope

 private:
  absl::Status CheckNode(const Expr& e) const;

  Dialect dialect_;
};

// Whether the node computes in float16 or bfloat16 with an operator, a function or a ramp, which is illegal. Values of
// these types may be loaded, selected, cast and inspected.
bool ComputesInStorageType(const Expr& e);

// An InvalidArgument error that quotes the expression, shortened if it is long.
absl::Status IllegalExpr(const Expr& e, std::string_view message);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_EXPR_CHECKER_H_
