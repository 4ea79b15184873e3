// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/match.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/ir/text.h"

namespace hone::ir {
namespace {

constexpr Type kF32{DType::kFloat32, 1};

Expr Increment(const Expr& e) {
  const auto* imm = e.As<IntImm>();
  return imm != nullptr ? MakeInt(imm->type, imm->value + 1) : MapChildren(e, Increment);
}

TEST(Match, PicksTheCaseOfTheNode) {
  const auto name = [](const Expr& e) {
    return Match(
        e, [](const Var& v) { return v.name; }, [](const IntImm&) { return std::string("imm"); },
        [](const auto&) { return std::string("other"); });
  };
  EXPECT_EQ(name(MakeVar("x")), "x");
  EXPECT_EQ(name(3), "imm");
  EXPECT_EQ(name(MakeVar("x") + 1), "other");
}

TEST(MapChildren, ReachesEveryChildOfEveryExpr) {
  const Buffer a = MakeBuffer("A", DType::kInt64, {9, 9});
  const Expr one = 1, two = 2;
  const std::vector<std::pair<Expr, std::string>> cases = {
      {MakeCast(kF32, one), "f32(2)"},
      {MakeUnary(UnaryOp::kAbs, one), "abs(2)"},
      {one + two, "2 + 3"},
      {MakeSelect(one < two, one, two), "select(2 < 3, 2, 3)"},
      {MakeLoad(a, {one, two}, one < two), "A[2, 3 where 2 < 3]"},
      {MakeCall({DType::kUInt64, 1}, Intrinsic::kReinterpret, {one}), "reinterpret<u64>(2)"},
      {MakeRamp(one, two, 4), "ramp(2, 3, 4)"},
      {MakeBroadcast(one, 4), "broadcast(2, 4)"},
  };
  for (const auto& [e, expected] : cases) {
    EXPECT_EQ(Print(Increment(e)), expected);
    EXPECT_TRUE(MapChildren(e, [](const Expr& child) { return child; }).SameHandle(e)) << expected;
    size_t mapped = 0, visited = 0;
    MapChildren(e, [&](const Expr& child) { return ++mapped, child; });
    ForEachChild(e, [&](const Expr&) { ++visited; });
    EXPECT_EQ(mapped, visited) << expected;
  }
}

TEST(MapChildren, CastsAndCallsFollowTheWidthOfTheirOperand) {
  const Expr x = MakeVar("x", kF32);
  const auto widen = [](const Expr& child) { return MakeBroadcast(child, 4); };
  EXPECT_EQ(MapChildren(MakeCast(kIndexType, x), widen).type(), (Type{DType::kInt64, 4}));
  EXPECT_EQ(MapChildren(MakeCall(kF32, Intrinsic::kExp, {x}), widen).type(), (Type{DType::kFloat32, 4}));
}

TEST(MapChildren, ReachesEveryChildOfEveryStmt) {
  const auto func = ParseFunc(R"(
    func f(A: i64[9]) {
      for i in 1 {
        if 1 < 2 { A[1 where 3 < 4] = 5 } else { A[6] = 7 }
        alloc t: i64[4] local { t[1] = 1 }
        let x = 8 { A[x] = 9 }
      }
    })");
  ASSERT_TRUE(func.ok()) << func.status();
  const std::function<Stmt(const Stmt&)> bump = [&](const Stmt& s) { return MapChildren(s, bump, Increment); };
  EXPECT_EQ(Print(bump(func->body)), R"(for i in 2 {
  if 2 < 3 {
    A[2 where 4 < 5] = 6
  } else {
    A[7] = 8
  }
  alloc t: i64[4] local {
    t[2] = 2
  }
  let x = 9 {
    A[x] = 10
  }
}
)");
  std::vector<std::string> seen;
  ForEachExpr(func->body, [&](const Expr& e) { seen.push_back(Print(e)); });
  EXPECT_EQ(seen, (std::vector<std::string>{"1", "1 < 2", "1", "2", "1", "5", "3 < 4", "3", "4", "6", "7", "1", "1",
                                            "8", "x", "9"}));
}

TEST(Substitute, ReplacesNamedVariablesOnly) {
  const Expr x = MakeVar("x"), y = MakeVar("y");
  const Expr e = x * 4 + y;
  EXPECT_EQ(Print(Substitute(e, {{"x", y + 1}})), "(y + 1) * 4 + y");
  EXPECT_TRUE(Substitute(e, {{"z", y}}).SameHandle(e));
  EXPECT_TRUE(Substitute(e, {}).SameHandle(e));
  const Buffer a = MakeBuffer("A", DType::kInt64, {9});
  EXPECT_EQ(Print(Substitute(MakeStore(a, {x}, y), {{"x", 3}, {"y", 4}})), "A[3] = 4\n");
}

TEST(UsesVar, LooksEverywhere) {
  const Buffer a = MakeBuffer("A", DType::kInt64, {9});
  const Expr e = MakeLoad(a, {MakeVar("i")}, MakeVar("m", kBoolType));
  EXPECT_TRUE(UsesVar(e, "i"));
  EXPECT_TRUE(UsesVar(e, "m"));
  EXPECT_FALSE(UsesVar(e, "A"));
}

}  // namespace
}  // namespace hone::ir
