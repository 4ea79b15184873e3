// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/expr.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/stmt.h"
#include "compiler/ir/text.h"

namespace hone::ir {
namespace {

constexpr Type kF32{DType::kFloat32, 1};
constexpr Type kI8{DType::kInt8, 1};

TEST(Expr, ConstantsAreNormalized) {
  EXPECT_EQ(MakeInt({DType::kUInt8, 1}, -1).As<IntImm>()->value, 255);
  EXPECT_EQ(MakeInt(kI8, 200).As<IntImm>()->value, -56);
  EXPECT_EQ(MakeFloat(kF32, 0.1).As<FloatImm>()->value, static_cast<double>(0.1f));
  EXPECT_EQ(MakeBool(true).type(), kBoolType);
  EXPECT_EQ(Expr(7).type(), kIndexType);
  EXPECT_EQ(MakeConst(kI8, 300.7).As<IntImm>()->value, 127);
  EXPECT_EQ(MakeConst(kBoolType, 2).As<IntImm>()->value, 1);
}

TEST(Expr, ZeroOfAVectorIsABroadcast) {
  const Expr zero = MakeZero({DType::kFloat32, 8});
  ASSERT_NE(zero.As<Broadcast>(), nullptr);
  EXPECT_EQ(zero.type(), (Type{DType::kFloat32, 8}));
}

TEST(Expr, ComparesAreBoolOfTheSameWidth) {
  const Expr a = MakeBroadcast(MakeFloat(kF32, 1), 4);
  EXPECT_EQ((a < a).type(), (Type{DType::kBool, 4}));
  EXPECT_EQ((a + a).type(), a.type());
}

TEST(Expr, CastToOwnTypeAndBroadcastToOneElementVanish) {
  const Expr x = MakeVar("x");
  EXPECT_TRUE(MakeCast(kIndexType, x).SameHandle(x));
  EXPECT_TRUE(MakeBroadcast(x, 1).SameHandle(x));
}

TEST(Expr, EqualIsStructural) {
  const Expr x = MakeVar("x"), y = MakeVar("y");
  EXPECT_TRUE(Equal(x + 1, MakeVar("x") + 1));
  EXPECT_FALSE(Equal(x + 1, y + 1));
  EXPECT_FALSE(Equal(x + 1, x - 1));
  EXPECT_FALSE(Equal(x, MakeVar("x", kF32)));
  EXPECT_FALSE(Equal(x, Expr()));
  EXPECT_TRUE(Equal(Expr(), Expr()));
  EXPECT_FALSE(Equal(MakeFloat(kF32, 0.0), MakeFloat(kF32, -0.0)));
  EXPECT_TRUE(Equal(MakeFloat(kF32, std::nan("")), MakeFloat(kF32, std::nan(""))));
  EXPECT_FALSE(Equal(Expr(1), MakeInt(kI8, 1)));
}

TEST(Expr, EqualComparesBuffersByHandle) {
  const Buffer a = MakeBuffer("A", DType::kFloat32, {4}), same_name = MakeBuffer("A", DType::kFloat32, {4});
  EXPECT_TRUE(Equal(MakeLoad(a, {0}), MakeLoad(a, {0})));
  EXPECT_FALSE(Equal(MakeLoad(a, {0}), MakeLoad(same_name, {0})));
  EXPECT_FALSE(Equal(MakeLoad(a, {0}), MakeLoad(a, {0}, MakeBool(true))));
}

TEST(Expr, LoadTakesItsWidthFromTheLastIndex) {
  const Buffer a = MakeBuffer("A", DType::kFloat32, {4, 8});
  EXPECT_EQ(MakeLoad(a, {0, MakeRamp(0, 1, 8)}).type(), (Type{DType::kFloat32, 8}));
  EXPECT_EQ(MakeLoad(a, {5}).type(), kF32);  // flat index
  EXPECT_EQ(MakeLoad(MakeBuffer("s", DType::kInt8, {}), {}).type(), kI8);
}

TEST(Buffer, CountsElementsAndBytes) {
  EXPECT_EQ(NumElements(*MakeBuffer("A", DType::kInt16, {2, 3, 4})), 24);
  EXPECT_EQ(NumBytes(*MakeBuffer("A", DType::kInt16, {2, 3, 4})), 48);
  EXPECT_EQ(NumElements(*MakeBuffer("s", DType::kInt16, {})), 1);
  EXPECT_EQ(NumElements(*MakeBuffer("none", DType::kInt16, {3, 0})), 0);
}

TEST(Stmt, ABlockOfOneUnnamedStatementIsThatStatement) {
  const Stmt store = MakeStore(MakeBuffer("A", DType::kInt64, {1}), {0}, 1);
  EXPECT_TRUE(MakeBlock({store}).SameHandle(store));
  EXPECT_NE(MakeBlock({store}, "stage").As<Block>(), nullptr);
  EXPECT_NE(MakeBlock({store, store}).As<Block>(), nullptr);
}

TEST(Stmt, EqualIsStructural) {
  const Buffer a = MakeBuffer("A", DType::kInt64, {4});
  const auto loop = [&](std::string var, LoopKind kind) {
    return MakeFor(var, 4, kind, MakeStore(a, {MakeVar(var)}, 1));
  };
  EXPECT_TRUE(Equal(loop("i", LoopKind::kSerial), loop("i", LoopKind::kSerial)));
  EXPECT_FALSE(Equal(loop("i", LoopKind::kSerial), loop("j", LoopKind::kSerial)));
  EXPECT_FALSE(Equal(loop("i", LoopKind::kSerial), loop("i", LoopKind::kParallel)));
  EXPECT_FALSE(Equal(loop("i", LoopKind::kSerial), Stmt()));
}

// Building an ill-typed expression is a bug of the caller. It aborts and names the operator and the types.
using ExprDeathTest = ::testing::Test;

TEST(ExprDeathTest, IllTypedConstructionAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Expr x = MakeVar("x"), f = MakeFloat(kF32, 1), t = MakeBool(true);
  const Buffer a = MakeBuffer("A", DType::kFloat32, {4, 8});
  EXPECT_DEATH(x + f, "ill-typed \\+: i64 f32");
  EXPECT_DEATH(x + MakeBroadcast(x, 4), "ill-typed \\+: i64 i64x4");
  EXPECT_DEATH(t + t, "ill-typed \\+: bool bool");
  EXPECT_DEATH(FloorDiv(f, f), "ill-typed //: f32 f32");
  EXPECT_DEATH(MakeBinary(BinaryOp::kShl, t, t), "ill-typed <<");
  EXPECT_DEATH(MakeBinary(BinaryOp::kAnd, f, f), "ill-typed &");
  EXPECT_DEATH(MakeUnary(UnaryOp::kSqrt, x), "ill-typed sqrt: i64");
  EXPECT_DEATH(MakeSelect(x, f, f), "ill-typed select: i64 f32 f32");
  EXPECT_DEATH(MakeCast(kF32, MakeBroadcast(x, 4)), "ill-typed cast: f32 i64x4");
  EXPECT_DEATH(MakeLoad(a, {x, x, x}), "load of A with 3 indices for 2 dimensions");
  EXPECT_DEATH(MakeLoad(a, {x, f}), "ill-typed load of A");
  EXPECT_DEATH(MakeLoad(a, {MakeRamp(0, 1, 4), x}), "ill-typed load of A");
  EXPECT_DEATH(MakeLoad(a, {x, x}, x), "ill-typed load of A");
  EXPECT_DEATH(MakeCall(kF32, Intrinsic::kExp, {x}), "ill-typed exp");
  EXPECT_DEATH(MakeCall(kF32, Intrinsic::kPow, {f}), "ill-typed pow");
  EXPECT_DEATH(MakeCall(kI8, Intrinsic::kReinterpret, {f}), "ill-typed reinterpret");
  EXPECT_DEATH(MakeRamp(x, f, 4), "ill-typed ramp");
  EXPECT_DEATH(MakeBroadcast(MakeBroadcast(x, 4), 4), "ill-typed broadcast");
}

}  // namespace
}  // namespace hone::ir
