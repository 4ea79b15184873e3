// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "compiler/ir/match.h"
#include "compiler/ir/workload.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

constexpr Type kF32{DType::kFloat32, 1};

// Returns a func around one statement, with some names to use.
std::string Around(const std::string& statement) {
  return "func f(A: f32[4,8], B: i64[16], C: bool[2], s: f32[]) { for i in 4 { for j in 8 {\n" + statement + "\n} } }";
}

std::string ErrorOf(const std::string& text) {
  const auto func = ParseFunc(text);
  return func.ok() ? "parses" : std::string(func.status().message());
}

TEST(Print, PutsParenthesesOnlyWhereNeeded) {
  const Expr a = MakeVar("a"), b = MakeVar("b"), c = MakeVar("c");
  EXPECT_EQ(Print(a + b * c), "a + b * c");
  EXPECT_EQ(Print((a + b) * c), "(a + b) * c");
  EXPECT_EQ(Print(a - (b - c)), "a - (b - c)");
  EXPECT_EQ(Print(a - b - c), "a - b - c");
  EXPECT_EQ(Print(FloorMod(FloorDiv(a, b), c)), "a // b %% c");
  EXPECT_EQ(Print(a < b && (b < c || c < a)), "a < b && (b < c || c < a)");
  EXPECT_EQ(Print(Equals(a < b, b < c)), "(a < b) == (b < c)");
  EXPECT_EQ(Print(MakeBinary(BinaryOp::kAnd, a, b)), "a & b");
  EXPECT_EQ(Print(MakeUnary(UnaryOp::kNeg, a + b)), "-(a + b)");
  EXPECT_EQ(Print(MakeUnary(UnaryOp::kNot, a < b)), "!(a < b)");
  EXPECT_EQ(Print(MakeUnary(UnaryOp::kNot, a)), "~a");
  EXPECT_EQ(Print(Min(a, Max(b, c))), "min(a, max(b, c))");
}

TEST(Print, DistinguishesNegativeConstantFromNegation) {
  EXPECT_EQ(Print(Expr(-1)), "-1");
  EXPECT_EQ(Print(MakeUnary(UnaryOp::kNeg, 1)), "-(1)");
  EXPECT_EQ(Print(MakeUnary(UnaryOp::kNeg, MakeFloat(kF32, -1))), "-(-1.0f32)");
  EXPECT_EQ(Print(MakeVar("x") - Expr(-1)), "x - -1");
}

TEST(Print, ConstantsOfEveryType) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Print(MakeInt({DType::kUInt64, 1}, -1)), "18446744073709551615u64");
  EXPECT_EQ(Print(MakeInt({DType::kInt8, 1}, -128)), "-128i8");
  EXPECT_EQ(Print(Expr(std::numeric_limits<int64_t>::min())), "-9223372036854775808");
  EXPECT_EQ(Print(MakeBool(false)), "false");
  EXPECT_EQ(Print(MakeFloat(kF32, 0.1)), "0.1f32");
  EXPECT_EQ(Print(MakeFloat({DType::kFloat64, 1}, 0.1)), "0.1f64");
  EXPECT_EQ(Print(MakeFloat(kF32, 2)), "2.0f32");
  EXPECT_EQ(Print(MakeFloat(kF32, 1e20)), "1e+20f32");
  EXPECT_EQ(Print(MakeFloat(kF32, -0.0)), "-0.0f32");
  EXPECT_EQ(Print(MakeFloat(kF32, -kInfinity)), "-inf_f32");
  EXPECT_EQ(Print(MakeFloat({DType::kBFloat16, 1}, std::nan(""))), "nan_bf16");
}

TEST(Print, QuotesNamesThatAreNoIdentifiers) {
  EXPECT_EQ(Print(MakeVar("i.outer")), "i.outer");
  EXPECT_EQ(Print(MakeVar("conv/1:0")), "`conv/1:0`");
  EXPECT_EQ(Print(MakeVar("min")), "`min`");
  EXPECT_EQ(Print(MakeVar("inf_f32")), "`inf_f32`");
  EXPECT_EQ(Print(MakeVar("")), "``");
  EXPECT_EQ(Print(MakeVar("a`\\\n")), "`a\\`\\\\\\x0a`");
}

TEST(Print, DistinguishesBuffersOfTheSameName) {
  const Buffer a = MakeBuffer("t", DType::kInt64, {4}), b = MakeBuffer("t", DType::kInt64, {4});
  EXPECT_EQ(Print(MakeLoad(a, {0}) + MakeLoad(b, {0}) + MakeLoad(a, {1})), "t[0] + t.2[0] + t[1]");
}

TEST(Print, BlocksNestAsTheyAre) {
  const Buffer a = MakeBuffer("A", DType::kInt64, {4});
  const Stmt store = MakeStore(a, {0}, 1);
  const Stmt inner = MakeBlock({store, store});
  EXPECT_EQ(Print(MakeBlock({inner, MakeBlock({store}, "stage one")}, "all")),
            "block all {\n  {\n    A[0] = 1\n    A[0] = 1\n  }\n  block `stage one` {\n    A[0] = 1\n  }\n}\n");
  EXPECT_EQ(Print(MakeFor("i", 2, LoopKind::kUnrolled, MakeBlock({})), 1), "  unrolled i in 2 {\n  }\n");
}

TEST(ParseFunc, ScopesComeFromTheDeclarations) {
  const auto func =
      ParseFunc("func f(A: f32[4]) { alloc t: f32[4] workspace { alloc u: f32[] local { u[] = A[0] } } }");
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(func->params[0]->scope, Scope::kParam);
  const Alloc* outer = func->body.As<Alloc>();
  ASSERT_NE(outer, nullptr);
  EXPECT_EQ(outer->buffer->scope, Scope::kWorkspace);
  EXPECT_EQ(outer->body.As<Alloc>()->buffer->scope, Scope::kLocal);
}

TEST(ParseFunc, InnerNamesHideOuterNames) {
  const auto func = ParseFunc("func f(A: i64[4]) { let x = 1 { let x = 2.0f32 { A[0] = i64(x) } A[1] = x } }");
  ASSERT_TRUE(func.ok()) << func.status();
}

TEST(ParseFunc, TypesAndFunctionsMayNameThings) {
  const auto func =
      ParseFunc("func exp(select: i64[4]) { for i8 in 4 { select[i8] = i64(i8(i8)) + select(i8 < 2, i8, abs(i8)) } }");
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func),
            "func exp(select: i64[4]) {\n  for i8 in 4 {\n    select[i8] = i64(i8(i8)) + select(i8 < 2, i8, abs(i8))\n "
            " }\n}\n");
}

TEST(ParseFunc, CommentsAndBlanksDoNotMatter) {
  const auto func = ParseFunc("# a comment\nfunc f ( A:f32[ 2 ] )\n{A[0]=1.0f32# the end\nA[1]=2f32}");
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), "func f(A: f32[2]) {\n  A[0] = 1.0f32\n  A[1] = 2.0f32\n}\n");
}

TEST(ParseFunc, ErrorsSayLineAndColumn) {
  EXPECT_EQ(ErrorOf("func f() {\n  x[0] = 1\n}"), "line 2, column 3: there is no buffer 'x' here; declare it first");
  EXPECT_EQ(ErrorOf(Around("A[i, j] = 1 + 2f32")), "line 2, column 13: '+' does not take i64 and f32");
}

TEST(ParseFunc, RejectsWhatIsIllTyped) {
  const std::pair<const char*, const char*> cases[] = {
      {"A[i, j] = 1", "the destination is f32 but the value is i64"},
      {"A[i, j] = true && false", "the destination is f32 but the value is bool"},
      {"B[i] = 1 && 2", "'&&' does not take i64 and i64"},
      {"C[i] = true & false", "'&' does not take bool and bool"},
      {"B[i] = !i", "'!' does not take i64"},
      {"C[i] = ~true", "'~' does not take bool"},
      {"B[i] = -C[0]", "'-' does not take bool"},
      {"A[i, 1f32] = 1f32", "access to 'A' needs 2 scalar i64 indices"},
      {"A[i, j, j] = 1f32", "access to 'A' needs 2 scalar i64 indices"},
      {"A[i, j where 1] = 1f32", "and a bool mask"},
      {"A[ramp(0, 1, 4), j] = 1f32", "access to 'A' needs 2"},
      {"A[i, j] = exp(i)", "the arguments of 'exp' have the wrong types"},
      {"A[i, j] = reinterpret<f32>(i)", "the arguments of 'reinterpret' have the wrong types"},
      {"A[i, j] = reinterpret<q>(i)", "expected a type"},
      {"A[i, j] = select(i, 1f32, 2f32)", "the arguments of 'select' have the wrong types"},
      {"A[i, j] = min(1f32, 2f64)", "the arguments of 'min' have the wrong types"},
      {"B[i] = sqrt(i)", "the arguments of 'sqrt' have the wrong types"},
      {"B[i] = i64x4(i)", "the arguments of 'i64x4' have the wrong types"},
      {"B[i] = broadcast(broadcast(i, 4), 4)", "broadcast takes a scalar"},
      {"B[i] = ramp(i, 1f32, 4)", "ramp takes two scalars of the same type"},
      {"for k in true { }", "the extent of a loop must be an i64"},
      {"if i { }", "the condition of an 'if' must be a bool"},
  };
  for (const auto& [statement, message] : cases)
    EXPECT_THAT(ErrorOf(Around(statement)), HasSubstr(message)) << statement;
}

TEST(ParseFunc, RejectsBadLiterals) {
  const std::pair<const char*, const char*> cases[] = {
      {"300i8", "'300' is out of range for i8"},
      {"-1u8", "'-1' is out of range for u8"},
      {"18446744073709551616u64", "is out of range for u64"},
      {"9223372036854775808", "is out of range for i64"},
      {"1.5", "'1.5' is not an integer and needs a float type: write 1.5f32"},
      {"1.5i32", "needs a float type"},
      {"1e999f64", "'1e999' is out of range for f64"},
      {"1q", "'q' is not a number type"},
      {"1bool", "'bool' is not a number type"},
      {"inf_i32", "expected a float type after inf_"},
      {"broadcast(1, 1)", "the width of a vector must be in 2..4096"},
      {"broadcast(1, 5000)", "the width of a vector must be in 2..4096"},
  };
  for (const auto& [literal, message] : cases) {
    EXPECT_THAT(ErrorOf(Around("B[i] = " + std::string(literal))), HasSubstr(message)) << literal;
  }
}

TEST(ParseFunc, RejectsBadStructure) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected 'func' but found the end of the text"},
      {"func min() {}", "'min' is a reserved word; as the name of the func write `min`"},
      {"func f(A f32[2]) {}", "expected ':' but found 'f32'"},
      {"func f(A: q[2]) {}", "expected an element type (f32, i8, ...) but found 'q'"},
      {"func f(A: f32[-1]) {}", "expected an extent (an integer) but found '-'"},
      {"func f(A: f32[9999999999,9999999999]) {}", "more than 2^56 elements"},
      {"func f(A: f32[2], A: f32[2]) {}", "there are two parameters 'A'"},
      {"func f() { alloc t: f32[2] param {} }", "workspace, local, shared or swizzled"},
      {"func f() { ", "but found the end of the text"},
      {"func f() {} x", "expected the end of the text after the func"},
      {"func f() { A = 1 }", "there is no buffer 'A'"},
      {"func f(A: i64[1]) { A[0] = y }", "there is no variable 'y' here"},
      {"func f(A: i64[1]) { A[0] = select }", "there is no variable 'select' here"},
      {"func f(A: i64[1]) { A[0] = solve(1) }", "there is no function 'solve'"},
      {"func f(A: i64[1]) { A[0] = reinterpret }", "expected '<'"},
      {"func f(A: i64[1]) { A[0] = over }", "'over' is a reserved word"},
      {"func f(A: i64[1]) { A[0] = ) }", "expected an expression but found ')'"},
      {"func `f", "missing closing `"},
      {"func `f\\q`", "unknown escape"},
      {"func f() { $ }", "unexpected character '$'"},
      {"func f() { \x01 }", "unexpected character '\\x01'"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(ErrorOf(text), HasSubstr(message)) << text;
}

TEST(ParseFunc, LimitsNestingOfHostileText) {
  const std::string open(100000, '('), minus(100000, '~');
  std::string chain = "1", blocks;
  for (int i = 0; i < 5000; ++i) chain += " + 1";
  for (int i = 0; i < 5000; ++i) blocks += "{";
  EXPECT_THAT(ErrorOf(Around("B[0] = " + open)), HasSubstr("nested more than 1000 levels deep"));
  EXPECT_THAT(ErrorOf(Around("B[0] = " + minus)), HasSubstr("nested more than 1000 levels deep"));
  EXPECT_THAT(ErrorOf(Around(blocks)), HasSubstr("nested more than 1000 levels deep"));
  EXPECT_THAT(ErrorOf(Around("B[0] = " + chain)), HasSubstr("more than 4096 operators nested in each other"));
}

// Each chain stays below a limit of its own, and is nested in the next chain's first operand.
TEST(ParseFunc, LimitsTheHeightOfExpressions) {
  const auto chains = [](int levels, int length) {
    std::string text = "i";
    for (int level = 0; level < levels; ++level) {
      text = "(" + text + ")";
      for (int i = 0; i < length; ++i) text += " + 1";
    }
    return ErrorOf(Around("B[0] = " + text));
  };
  EXPECT_THAT(chains(20, 4096), HasSubstr("more than 4096 operators nested in each other"));
  EXPECT_EQ(chains(20, 200), "parses");
  std::string wide = "i";
  for (int i = 0; i < 100; ++i) wide += " + max(" + std::string(200, '~') + "i, abs(B[i]))";
  EXPECT_EQ(ErrorOf(Around("B[0] = " + wide)), "parses") << "operands beside each other do not add up";
}

TEST(ParseWorkload, LimitsTheTokensOfHostileText) {
  const auto workload = ParseWorkload("workload \"w\" " + std::string(1 << 19, ','));
  EXPECT_THAT(workload.status().message(), HasSubstr("more than 262144 tokens"));
}

}  // namespace
}  // namespace hone::ir
