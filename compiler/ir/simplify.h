// SPDX-License-Identifier: Apache-2.0
// Simplification of expressions and statements, and the canonical linear form of index arithmetic.
//
// An integer index becomes sum(coefficient * atom) + constant, in which split and fused loop variables cancel. A
// subexpression without such a form (min, an inexact floor division) is an atom. Simplification changes the form of an
// expression, never its value; what it cannot decide stays as it is. It assumes that arithmetic on loop variables and
// constants does not wrap. Arithmetic on loaded or converted numbers may wrap.
#ifndef HONE_COMPILER_IR_SIMPLIFY_H_
#define HONE_COMPILER_IR_SIMPLIFY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"

namespace hone::ir {

// An inclusive interval of integers. A bound of +-kUnbounded or beyond means "unknown".
struct Interval {
  static constexpr int64_t kUnbounded = int64_t{1} << 60;
  int64_t low = -kUnbounded, high = kUnbounded;
  bool IsPoint() const { return low == high; }
};

// The ranges of the variables in scope. A variable without an entry may have any value.
using Ranges = std::map<std::string, Interval, std::less<>>;
Ranges SizeRanges(std::span<const OpenSize> sizes);
// The ranges of the variables that the func's outermost Lets bind: in a kernel, to the values of its open sizes.
Ranges SizeRanges(const Func& func);
// The same as sizes. Lets that bind something else are left out.
std::vector<OpenSize> OpenSizesOf(const Func& func);

// The ranges where the condition is true, as far as it says that a variable, a sum with one or a quotient of that is at
// least a number: n * 8 >= 13 && rest > 2 says n >= 2.
Ranges RangesWhere(const Expr& condition, Ranges ranges);

// sum of coefficient * atom, plus constant. Atoms are distinct scalar expressions of kIndexType; no coefficient is 0.
struct Linear {
  std::vector<std::pair<Expr, int64_t>> terms;
  int64_t constant = 0;

  void Add(const Expr& atom, int64_t coefficient);
  void Add(const Linear& other, int64_t factor);
  bool IsConstant() const { return terms.empty(); }
};

Linear ToLinear(const Expr& index, const Ranges& ranges);  // index: scalar kIndexType
// The row-major position of an element, indices of it being scalar.
Linear ToLinear(const BufferNode& buffer, const std::vector<Expr>& indices, const Ranges& ranges);
Expr FromLinear(const Linear& linear);
Interval BoundsOf(const Expr& index, const Ranges& ranges);
Interval BoundsOf(const Linear& linear, const Ranges& ranges);
// The constant that the expression equals for all values in ranges; nullopt if there is none.
std::optional<int64_t> ConstantValue(const Expr& index, const Ranges& ranges = {});

// The range of the variable that the Let binds; Interval() if it is no scalar index. A value of loaded or converted
// numbers may be anything. The range is then that of SafeBoundsOf or, if that is unbounded, of all 64-bit integers.
Interval RangeOf(const Let& let, const Ranges& ranges);

Expr Simplify(const Expr& e, const Ranges& ranges = {});
// Uses the extents of the loops inside. Drops loops without iterations, branches not taken and empty statements.
Stmt Simplify(const Stmt& s, const Ranges& ranges = {});

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_SIMPLIFY_H_
