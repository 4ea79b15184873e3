// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/simplify.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/safe_bounds.h"
#include "compiler/ir/text.h"

namespace hone::ir {
namespace {

constexpr int64_t kRows = 5, kColumns = 4;

const Ranges kLoops = {{"i", {0, kRows - 1}}, {"j", {0, kColumns - 1}}};

// Returns a random index in terms of i and j, with every operator that occurs in indices.
Expr RandomIndex(Random& random, int depth) {
  using B = BinaryOp;
  static constexpr B kOps[] = {B::kAdd, B::kSub, B::kMul, B::kFloorDiv, B::kFloorMod,
                               B::kMin, B::kMax, B::kDiv, B::kMod};
  if (depth == 0) {
    const int64_t pick = random.Below(3);
    return pick == 0 ? MakeVar("i") : pick == 1 ? MakeVar("j") : Expr(random.Below(11) - 4);
  }
  const int64_t pick = random.Below(10);
  const Expr a = RandomIndex(random, depth - 1), b = RandomIndex(random, depth - 1);
  if (pick == 9) return MakeSelect(a < b, RandomIndex(random, depth - 1), b);
  return MakeBinary(kOps[pick], a, b);
}

// Evaluates the expression for all i and j with the interpreter.
std::vector<int64_t> ValuesOf(const Expr& e) {
  const Buffer out = MakeBuffer("out", DType::kInt64, {kRows, kColumns});
  const Stmt store = MakeStore(out, {MakeVar("i"), MakeVar("j")}, e);
  const Func func{"f", {out}, MakeFor("i", kRows, LoopKind::kSerial, MakeFor("j", kColumns, LoopKind::kSerial, store))};
  std::vector<int64_t> values(kRows * kColumns);
  const std::span<std::byte> memory = std::as_writable_bytes(std::span(values));
  const absl::Status status = Interpret(func, std::vector<std::span<std::byte>>{memory});
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

TEST(SimplifyIndex, KeepsEveryValueAndItsBoundsHold) {
  Random random(1);
  for (int n = 0; n < 3000; ++n) {
    const Expr e = RandomIndex(random, 1 + n % 4);
    const std::vector<int64_t> values = ValuesOf(e);
    ASSERT_EQ(ValuesOf(Simplify(e, kLoops)), values) << Print(e) << "\n" << Print(Simplify(e, kLoops));
    for (const Interval bounds : {BoundsOf(e, kLoops), SafeBoundsOf(e, kLoops)}) {
      for (const int64_t value : values) {
        ASSERT_LE(bounds.low, value) << Print(e);
        ASSERT_GE(bounds.high, value) << Print(e);
      }
    }
  }
}

// The index of an element in a row-major tensor, from the number of the element. Open sizes divide it, so that strides
// are products.
TEST(SimplifyIndex, JoinsAnElementsPlaceInOpenDimensions) {
  const Ranges ranges = {{"x", {0, 100000}}, {"m", {1, 9}}, {"n", {2, 50}}};
  const Expr x = MakeVar("x"), m = MakeVar("m"), n = MakeVar("n");
  const auto place = [&](const Expr& inner, const Expr& middle) {
    return FloorMod(x, inner) + FloorMod(FloorDiv(x, inner), middle) * inner +
           FloorDiv(FloorDiv(x, inner), middle) * (middle * inner);
  };
  for (const Expr& index : {place(n, Expr(20)), place(n, m), place(m * n * Expr(3), Expr(4)), place(n * Expr(2), m)}) {
    EXPECT_TRUE(Equal(Simplify(index, ranges), x)) << Print(index) << " is " << Print(Simplify(index, ranges));
  }
  // The remainder of another number does not complete the quotient.
  const Expr other = FloorMod(x, n) + FloorDiv(x, m) * n;
  EXPECT_TRUE(Equal(Simplify(other, ranges), other)) << Print(Simplify(other, ranges));
}

// The simplifier's questions about subexpressions must not multiply, because text may come from outside.
TEST(SimplifyIndex, TerminatesOnDeepAndWideExpressions) {
  Ranges ranges;
  const auto variable = [&](int n) {
    const std::string name = "v" + std::to_string(n);
    ranges[name] = {0, 40};
    return MakeVar(name);
  };
  Expr nested = variable(0), sum = variable(0), quotient = variable(0);
  Expr loaded = MakeLoad(MakeBuffer("b", DType::kInt64, {64}), {variable(0)});
  for (int n = 1; n <= 300; ++n) {
    loaded = Max(Min(loaded + Expr(n), variable(n)), Expr(0) - variable(n));
    if (n > 40) continue;
    nested = Min(nested + Expr(n), variable(n));
    if (n <= 20) sum = sum + Min(variable(n), variable(n + 1) * Expr(2));
    quotient = FloorMod(FloorDiv(quotient * Expr(3) + variable(n), Expr(7)), Expr(100 + n));
  }
  for (const Expr& e : {nested, sum, quotient}) {
    EXPECT_TRUE(Simplify(e, ranges).defined());
    const Interval bounds = BoundsOf(e, ranges);
    EXPECT_LE(bounds.low, 0);
    EXPECT_GE(bounds.high, 0);
  }
  EXPECT_TRUE(Simplify(loaded, ranges).defined());
}

}  // namespace
}  // namespace hone::ir
