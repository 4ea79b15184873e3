// SPDX-License-Identifier: Apache-2.0
// Properties that hold for any IR, on a thousand random funcs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/ir/interpret.h"
#include "compiler/ir/match.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/unit/ir/random_ir.h"

namespace hone::ir {
namespace {

constexpr int kFuncs = 1000;

Expr Same(const Expr& e) { return MapChildren(e, Same); }
Stmt Same(const Stmt& s) {
  return MapChildren(s, [](const Stmt& child) { return Same(child); }, [](const Expr& e) { return Same(e); });
}

// Returns the same tree built from new nodes.
Expr Copy(const Expr& e) {
  if (const auto* imm = e.As<IntImm>()) return MakeInt(imm->type, imm->value);
  if (const auto* imm = e.As<FloatImm>()) return MakeFloat(imm->type, imm->value);
  if (const auto* var = e.As<Var>()) return MakeVar(var->name, var->type);
  return MapChildren(e, Copy);
}
Stmt Copy(const Stmt& s) {
  return MapChildren(s, [](const Stmt& child) { return Copy(child); }, [](const Expr& e) { return Copy(e); });
}

// Runs the func on bytes drawn from the seed and returns the parameters' bytes.
std::vector<Bytes> Outcome(const Func& func, uint64_t seed) {
  Random random(seed);
  std::vector<Bytes> memory;
  for (const Buffer& param : func.params) {
    Bytes bytes(static_cast<size_t>(NumBytes(*param)));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(256));
    memory.push_back(std::move(bytes));
  }
  const std::vector<std::span<std::byte>> args(memory.begin(), memory.end());
  const absl::Status status = Interpret(func, args);
  EXPECT_TRUE(status.ok()) << status << "\n" << Print(func);
  return memory;
}

TEST(RoundTrip, GeneratedFuncsAreLegal) {
  for (uint64_t seed = 0; seed < kFuncs; ++seed) {
    const Func func = RandomIr(seed).MakeFunc();
    const absl::Status status = Verify(func);
    ASSERT_TRUE(status.ok()) << status << "\n" << Print(func);
  }
}

TEST(RoundTrip, PrintedTextParsesToTheSameText) {
  for (uint64_t seed = 0; seed < kFuncs; ++seed) {
    const std::string text = Print(RandomIr(seed).MakeFunc());
    const auto parsed = ParseFunc(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    ASSERT_EQ(Print(*parsed), text);
  }
}

TEST(RoundTrip, ParsedFuncComputesTheSame) {
  for (uint64_t seed = 0; seed < kFuncs; ++seed) {
    const Func func = RandomIr(seed).MakeFunc();
    const auto parsed = ParseFunc(Print(func));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_EQ(Outcome(func, seed), Outcome(*parsed, seed)) << Print(func);
  }
}

TEST(RoundTrip, MapChildrenKeepsUnchangedHandles) {
  for (uint64_t seed = 0; seed < kFuncs; ++seed) {
    const Func func = RandomIr(seed).MakeFunc();
    ASSERT_TRUE(Same(func.body).SameHandle(func.body)) << Print(func);
  }
}

TEST(RoundTrip, CopiesAreEqualButNotTheSame) {
  for (uint64_t seed = 0; seed < kFuncs; ++seed) {
    RandomIr random(seed);
    const Expr e = random.MakeExpr({DType::kFloat32, 4}, 4);
    const Expr copy = Copy(e);
    ASSERT_FALSE(copy.SameHandle(e));
    ASSERT_TRUE(Equal(copy, e)) << Print(e);
    const Func func = RandomIr(seed).MakeFunc();
    ASSERT_TRUE(Equal(Copy(func.body), func.body)) << Print(func);
  }
}

TEST(RoundTrip, DifferentTextsMeanDifferentTrees) {
  for (uint64_t seed = 0; seed < kFuncs; ++seed) {
    const Expr a = RandomIr(seed).MakeExpr(kIndexType, 2);
    const Expr b = RandomIr(seed + 1).MakeExpr(kIndexType, 2);
    ASSERT_EQ(Equal(a, b), Print(a) == Print(b)) << Print(a) << "\n" << Print(b);
  }
}

// Text may come from outside, so damaged text must give a Status or a func, without a crash.
TEST(RoundTrip, DamagedTextNeverCrashes) {
  for (uint64_t seed = 0; seed < kFuncs; ++seed) {
    std::string text = Print(RandomIr(seed).MakeFunc());
    Random random(seed);
    for (int64_t n = random.Below(4) + 1; n > 0; --n) {
      const auto at = static_cast<size_t>(random.Below(static_cast<int64_t>(text.size())));
      if (random.Below(2)) {
        text[at] = static_cast<char>(random.Below(256));
      } else {
        text.erase(at, static_cast<size_t>(random.Below(8)));
      }
    }
    const auto parsed = ParseFunc(text);
    if (!parsed.ok()) {
      ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_EQ(parsed.status().message().substr(0, 5), "line ") << parsed.status();
    }
  }
}

}  // namespace
}  // namespace hone::ir
