// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

constexpr Type kF32{DType::kFloat32, 1};

std::string VerdictOn(const Func& func) {
  const absl::Status status = Verify(func);
  return status.ok() ? "legal" : std::string(status.message());
}

std::string VerdictOn(const std::string& text) {
  const auto func = ParseFunc(text);
  return func.ok() ? VerdictOn(*func) : "does not parse: " + std::string(func.status().message());
}

// Builds a node without the Make* functions, as a bug might.
template <typename Node>
Expr Forge(Node node, Type type) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{std::move(node), type}));
}

class VerifyNode : public ::testing::Test {
 protected:
  const Buffer a_ = MakeBuffer("A", DType::kFloat32, {4, 8});
  const Expr one_ = MakeFloat(kF32, 1);

  std::string Verdict(const Stmt& body) const { return VerdictOn(Func{"f", {a_}, body}); }
  std::string VerdictOnValue(const Expr& value) const { return Verdict(MakeLet("v", value, MakeBlock({}))); }
};

TEST(Verify, AcceptsALegalFunc) {
  EXPECT_EQ(VerdictOn(R"(func f(A: f32[4,8], B: f32[32]) {
    alloc w: f32[8] workspace {
      parallel i in 4 { alloc t: f32[] local { t[] = A[i, 0] B[i * 8] = t[] } }
      parallel j in 4 { vectorized k in 8 { B[j * 8 + k] = w[k] } }
      let x = broadcast(1f32, 4) { B[ramp(0, 1, 4) where ramp(0, 1, 4) < broadcast(3, 4)] = x }
    } })"),
            "legal");
}

TEST(Verify, RejectsIllegalText) {
  const std::pair<const char*, const char*> cases[] = {
      {"func `a b`() {}", "func 'a b': its name must be a C identifier"},
      {"func f(A: i64[4]) { for i in 4 { let i = 2 { A[i] = 0 } } }",
       "variable 'i' is bound again inside its own scope"},
      {"func f(A: i64[4]) { parallel i in 4 { parallel j in 4 { A[i] = 0 } } }",
       "parallel loop 'j' is inside another parallel loop"},
      {"func f(A: i64[4]) { parallel i in 4 { alloc t: i64[2] workspace { A[i] = 0 } } }",
       "alloc of 't' in the workspace, inside a parallel loop; make it local"},
      {"func f(A: f16[4]) { A[0] = A[1] + A[2] }",
       "in 'A[1] + A[2]': this computes in a type that is only for storage; cast to f32 first"},
      {"func f(A: bf16[4]) { A[0] = -A[1] }", "computes in a type that is only for storage"},
      {"func f(A: f16[4]) { A[0] = exp(A[1]) }", "computes in a type that is only for storage"},
      {"func f(A: f16[4], B: bool[1]) { B[0] = A[0] < A[1] }", "computes in a type that is only for storage"},
      {"func f(A: bf16[4]) { A[ramp(0, 1, 4)] = ramp(1bf16, 1bf16, 4) }",
       "computes in a type that is only for storage"},
      {"func f(A: bool[4]) { merge A[0] = sum 0:2 of A[1] }", "reduction sum is not possible for bool"},
      {"func f(A: bool[4]) { merge A[0] = prod 0:2 of A[1] }", "reduction prod is not possible for bool"},
      {"func f(A: f16[4]) { merge A[0] = max 0:2 of A[1] }", "reduction max is not possible for f16"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(VerdictOn(std::string(text)), HasSubstr(message)) << text;
}

TEST(Verify, StorageTypesMayBeMovedAndInspected) {
  EXPECT_EQ(VerdictOn("func f(A: f16[4], B: bool[1]) { A[0] = f16(f32(A[1]) + 1f32) A[1] = select(true, A[2], 1f16) "
                      "B[0] = isnan(A[0]) A[2] = reinterpret<f16>(1i16) }"),
            "legal");
}

TEST_F(VerifyNode, RejectsUnboundVariables) {
  EXPECT_THAT(VerdictOnValue(MakeVar("x", kF32)), HasSubstr("variable 'x' is not bound here"));
  const Stmt in_sibling = MakeFor("i", 4, LoopKind::kSerial, MakeBlock({}));
  const Stmt uses = MakeStore(a_, {MakeVar("i"), 0}, one_);
  EXPECT_THAT(Verdict(MakeBlock({in_sibling, uses})), HasSubstr("variable 'i' is not bound here"));
  EXPECT_THAT(Verdict(MakeFor("i", MakeVar("i"), LoopKind::kSerial, uses)), HasSubstr("extent of loop 'i'"));
}

TEST_F(VerifyNode, RejectsVariablesOfAnotherType) {
  EXPECT_THAT(Verdict(MakeLet("x", 1, MakeStore(a_, {0, 0}, MakeVar("x", kF32)))),
              HasSubstr("variable 'x' is used as f32 but bound as i64"));
}

TEST_F(VerifyNode, RejectsUnknownBuffers) {
  const Buffer b = MakeBuffer("B", DType::kFloat32, {4}, Scope::kLocal);
  EXPECT_THAT(VerdictOnValue(MakeLoad(b, {0})),
              HasSubstr("load of 'B', which is neither a parameter nor allocated here"));
  EXPECT_THAT(Verdict(MakeStore(b, {0}, one_)), HasSubstr("store of 'B', which is neither"));
  const Stmt store = MakeStore(b, {0}, one_);
  EXPECT_THAT(Verdict(MakeBlock({MakeAlloc(b, store), store})), HasSubstr("store of 'B', which is neither"));
  EXPECT_THAT(Verdict(MakeAlloc(b, MakeAlloc(b, store))),
              HasSubstr("alloc of 'B' is nested in an alloc of the same buffer"));
  const Buffer same_name = MakeBuffer("A", DType::kFloat32, {4, 8});
  EXPECT_THAT(VerdictOnValue(MakeLoad(same_name, {0, 0})), HasSubstr("load of 'A', which is neither"));
}

TEST_F(VerifyNode, RejectsForgedTypes) {
  EXPECT_THAT(VerdictOnValue(Forge(Binary{BinaryOp::kAdd, one_, Expr(1)}, kF32)),
              HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(Binary{BinaryOp::kLt, one_, one_}, kF32)),
              HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(Unary{UnaryOp::kNot, one_}, kF32)), HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(Cast{{DType::kFloat32, 4}, one_}, kF32)),
              HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(Select{one_, one_, one_}, kF32)), HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(Call{kF32, Intrinsic::kPow, {one_}}, kF32)),
              HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(Call{kF32, Intrinsic::kExp, {}}, kF32)), HasSubstr("the call has no arguments"));
  EXPECT_THAT(VerdictOnValue(Forge(Broadcast{one_, 4}, kF32)), HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(Ramp{one_, Expr(1), 4}, {DType::kFloat32, 4})),
              HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(IntImm{{DType::kInt8, 1}, 300}, {DType::kInt8, 1})),
              HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(FloatImm{kIndexType, 1.0}, kIndexType)),
              HasSubstr("does not fit its operands or value"));
  EXPECT_THAT(VerdictOnValue(Forge(Unary{UnaryOp::kNeg, Expr()}, kF32)), HasSubstr("an operand is missing"));
}

TEST_F(VerifyNode, RejectsForgedAccesses) {
  EXPECT_THAT(VerdictOnValue(Forge(Load{a_, {0, 0, 0}, {}}, kF32)),
              HasSubstr("load of 'A' with 3 indices for 2 dimensions"));
  EXPECT_THAT(VerdictOnValue(Forge(Load{a_, {0, one_}, {}}, kF32)), HasSubstr("load of 'A': indices must be i64"));
  EXPECT_THAT(VerdictOnValue(Forge(Load{a_, {0, 0}, one_}, kF32)), HasSubstr("a mask must be bool"));
  EXPECT_THAT(VerdictOnValue(Forge(Load{nullptr, {0, 0}, {}}, kF32)), HasSubstr("load without a buffer"));
  const auto forge_store = [&](Store store) {
    return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(store)}));
  };
  EXPECT_THAT(Verdict(forge_store({a_, {0, 0}, Expr(1), {}})),
              HasSubstr("store of i64 to 'A': the destination is f32"));
  EXPECT_THAT(Verdict(forge_store({a_, {0, 0, 0}, one_, {}})), HasSubstr("store of 'A' with 3 indices"));
  EXPECT_THAT(Verdict(forge_store({a_, {0, 0}, MakeBroadcast(one_, 4), {}})), HasSubstr("store of f32x4 to 'A'"));
  EXPECT_THAT(Verdict(forge_store({a_, {0, 0}, Expr(), {}})), HasSubstr("an expression is missing"));
}

TEST_F(VerifyNode, RejectsForgedStatements) {
  const auto forge = [](auto node) { return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(node)})); };
  const Stmt store = MakeStore(a_, {0, 0}, one_);
  EXPECT_THAT(Verdict({}), HasSubstr("a statement is missing"));
  EXPECT_THAT(Verdict(forge(If{one_, store, {}})), HasSubstr("the condition of an 'if' must be a bool"));
  EXPECT_THAT(Verdict(forge(For{"i", one_, LoopKind::kSerial, store})), HasSubstr("extent of loop 'i' is not an i64"));
  EXPECT_THAT(Verdict(forge(Alloc{nullptr, store})), HasSubstr("alloc without a buffer"));
  EXPECT_THAT(Verdict(forge(Alloc{MakeBuffer("P", DType::kInt8, {}), store})), HasSubstr("with scope param"));
}

TEST_F(VerifyNode, RejectsBadParams) {
  const Stmt store = MakeStore(a_, {0, 0}, one_);
  EXPECT_THAT(VerdictOn(Func{"f", {a_, a_}, store}), HasSubstr("parameter 'A' is listed twice"));
  EXPECT_THAT(VerdictOn(Func{"f", {a_, nullptr}, store}), HasSubstr("a parameter is missing"));
  EXPECT_THAT(VerdictOn(Func{"f", {a_, MakeBuffer("t", DType::kInt8, {}, Scope::kLocal)}, store}),
              HasSubstr("parameter 't' has scope local; a parameter must have scope param"));
}

TEST_F(VerifyNode, LongExpressionsAreCutInMessages) {
  Expr sum = one_;
  for (int i = 0; i < 100; ++i) sum = sum + one_;
  const std::string message = VerdictOnValue(Forge(Unary{UnaryOp::kNot, sum}, kF32));
  EXPECT_LT(message.size(), 300u);
  EXPECT_THAT(message, HasSubstr("..."));
}

}  // namespace
}  // namespace hone::ir
