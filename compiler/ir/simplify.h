// SPDX-License-Identifier: Apache-2.0
// Folding and canonical linear form of index arithmetic.
//
// Integer index expressions are brought into the form sum(coefficient * atom) + constant, in which split and fused loop
// variables cancel; what cannot be taken apart (min, a floor division that does not come out) is an atom. Not a prover:
// what it cannot decide it leaves alone. Values are never changed, only their form. Arithmetic on loop variables and
// constants is taken not to wrap; on numbers that are loaded or converted it may.
#ifndef HONE_COMPILER_IR_SIMPLIFY_H_
#define HONE_COMPILER_IR_SIMPLIFY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"

namespace hone::ir {

// An inclusive interval of integers. Bounds beyond +-kUnbounded mean "unknown".
struct Interval {
  static constexpr int64_t kUnbounded = int64_t{1} << 60;
  int64_t low = -kUnbounded, high = kUnbounded;
  bool IsPoint() const { return low == high; }
};

// What is known of the variables in scope. A variable that is absent may have any value.
using Ranges = std::map<std::string, Interval, std::less<>>;

// sum of coefficient * atom, plus constant. Atoms are scalar kIndexType expressions, distinct, coefficients not 0.
struct Linear {
  std::vector<std::pair<Expr, int64_t>> terms;
  int64_t constant = 0;

  void Add(const Expr& atom, int64_t coefficient);
  void Add(const Linear& other, int64_t factor);
  bool IsConstant() const { return terms.empty(); }
};

Linear ToLinear(const Expr& index, const Ranges& ranges);  // index: scalar kIndexType
Expr FromLinear(const Linear& linear);
Interval BoundsOf(const Expr& index, const Ranges& ranges);
Interval BoundsOf(const Linear& linear, const Ranges& ranges);
// The value if the expression is the same constant for all values in ranges.
std::optional<int64_t> ConstantValue(const Expr& index, const Ranges& ranges = {});

// Of the variable that it binds.
Interval RangeOf(const Let& let, const Ranges& ranges);

Expr Simplify(const Expr& e, const Ranges& ranges = {});
// Uses the ranges of the loops it passes; drops loops without iterations, branches not taken, and what is empty.
Stmt Simplify(const Stmt& s, const Ranges& ranges = {});

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_SIMPLIFY_H_
