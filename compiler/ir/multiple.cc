// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/multiple.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/simplify.h"

namespace hone::ir {
namespace {

bool IsMultipleOf(const Linear& linear, int64_t n);

// The case of a term without a linear form, such as a floor division.
bool IsAtomMultipleOf(const Expr& atom, int64_t n) {
  if (n == 1) return true;
  const Binary* binary = atom.As<Binary>();
  const IntImm* right = binary == nullptr ? nullptr : binary->b.As<IntImm>();
  if (binary == nullptr) return false;
  switch (binary->op) {
    case BinaryOp::kFloorMod:
      return right != nullptr && right->value % n == 0 && IsMultipleOf(binary->a, n);
    case BinaryOp::kFloorDiv:
      return right != nullptr && right->value > 0 && right->value < INT32_MAX && n < INT32_MAX &&
             IsMultipleOf(binary->a, n * right->value);
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return IsMultipleOf(binary->a, n) && IsMultipleOf(binary->b, n);
    default:
      return false;
  }
}

bool IsMultipleOf(const Linear& linear, int64_t n) {
  return linear.constant % n == 0 && std::ranges::all_of(linear.terms, [&](const auto& term) {
           return IsAtomMultipleOf(term.first, n / std::gcd(n, term.second));
         });
}

}  // namespace

bool IsMultipleOf(const Expr& index, int64_t n) { return IsMultipleOf(ToLinear(index, {}), n); }

bool IsMultipleOf(const BufferNode& buffer, const std::vector<Expr>& indices, int64_t n) {
  return IsMultipleOf(ToLinear(buffer, indices, {}), n);
}

}  // namespace hone::ir
