// SPDX-License-Identifier: Apache-2.0
// Prefetches: text, verifier, and that they have no effect on results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/match.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/unit/ir/eval_text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

constexpr char kLegal[] =
    "func f(x: i64[4], y: i64[2]) {\n"
    "  for i in 2 {\n"
    "    prefetch 16 x from i * 1000 - 5\n"
    "    y[i] = i + 7\n"
    "  }\n"
    "}\n";

std::string Verdict(const std::string& text) {
  const auto func = ParseFunc(text);
  return func.ok() ? std::string(Verify(*func).message()) : std::string(func.status().message());
}

TEST(Prefetch, TextReadsBack) {
  const auto func = ParseFunc(kLegal);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), kLegal);
  EXPECT_EQ(Verdict(kLegal), "");
  EXPECT_EQ(RunText(kLegal), "7 8") << "whatever elements it names";
}

TEST(Prefetch, NamesTheBufferThatIsMeant) {
  const auto func = ParseFunc("func f(x: i64[4]) { x[0] = 1 alloc x: i64[4] local { x[0] = 1 prefetch 2 x from 0 } }");
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_THAT(Print(*func), HasSubstr("prefetch 2 x.2 from 0"));
  EXPECT_TRUE(ParseFunc(Print(*func)).ok());
}

TEST(Prefetch, ItsChildIsTheFirstElement) {
  const Func func = ParseFunc("func f(x: i64[4]) { for i in 2 { prefetch 8 x from i + 1 } }").value();
  const Stmt fetch = func.body.As<For>()->body;
  EXPECT_EQ(WrittenBuffer(fetch), nullptr);
  EXPECT_EQ(Print(Substitute(fetch, {{"i", Expr(3)}})), "prefetch 8 x from 3 + 1\n");
  EXPECT_TRUE(Substitute(fetch, {{"j", Expr(3)}}).SameHandle(fetch));
  EXPECT_TRUE(Equal(fetch, MakePrefetch(func.params[0], fetch.As<Prefetch>()->first, 8)));
  EXPECT_FALSE(Equal(fetch, MakePrefetch(func.params[0], fetch.As<Prefetch>()->first, 9)));
}

TEST(Prefetch, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(Verdict("func f(x: i64[4]) { prefetch 0 x from 1 }"), HasSubstr("must have at least one element"));
  EXPECT_THAT(Verdict("func f(x: i64[4]) { prefetch 4 z from 1 }"), HasSubstr("there is no buffer 'z'"));
  EXPECT_THAT(Verdict("func f(x: i64[4]) { prefetch 4 x from 1f32 }"), HasSubstr("must be an i64"));
  const Buffer stranger = MakeBuffer("z", DType::kFloat32, {4}, Scope::kParam);
  EXPECT_THAT(std::string(Verify(Func{"f", {}, MakePrefetch(stranger, Expr(0), 1)}).message()),
              HasSubstr("prefetch of 'z', which is neither a parameter nor allocated here"));
}

}  // namespace
}  // namespace hone::ir
