// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/ir/eval_text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

TEST(Interpret, LoopsCountUpAndMayBeEmpty) {
  EXPECT_EQ(RunText("func f(out: i64[4]) { for i in 4 { out[i] = i * i } }"), "0 1 4 9");
  EXPECT_EQ(RunText("func f(out: i64[2]) { for i in -3 { out[i] = 7 } for j in 0 { out[j] = 7 } }"), "0 0");
  EXPECT_EQ(RunText("func f(out: i64[6]) { for i in 3 { for j in i { out[i + j] = 1 } } }"), "0 1 1 1 0 0");
}

TEST(Interpret, EveryKindOfLoopRuns) {
  EXPECT_EQ(RunText("func f(out: i64[8]) { parallel i in 2 { vectorized j in 2 { unrolled k in 2 {"
                    "out[i * 4 + j * 2 + k] = i * 4 + j * 2 + k } } } }"),
            "0 1 2 3 4 5 6 7");
}

TEST(Interpret, StatementsRunInOrder) {
  EXPECT_EQ(RunText("func f(out: i64[2]) { block a { out[0] = 1 out[1] = out[0] + 1 } out[0] = out[1] + 1 }"), "3 2");
}

TEST(Interpret, IfTakesOneCase) {
  EXPECT_EQ(RunText("func f(out: i64[3]) { for i in 3 { if i < 1 { out[i] = 5 } else { out[i] = 6 } } }"), "5 6 6");
  EXPECT_EQ(RunText("func f(out: i64[3]) { for i in 3 { if i < 1 { out[i] = 5 } } }"), "5 0 0");
}

TEST(Interpret, LetBindsOnceAndInnerNamesHide) {
  EXPECT_EQ(
      RunText("func f(out: i64[2]) { out[0] = 1 let x = out[0] { out[0] = 9 out[1] = x let x = 5 { out[0] = x } } }"),
      "5 1");
  EXPECT_EQ(RunText("func f(out: i64[1]) { let x = 1 { let x = x + 1 { out[0] = x } } }"), "2");
}

TEST(Interpret, FlatAndStructuredIndicesAddressTheSameElement) {
  EXPECT_EQ(RunText("func f(out: i64[2,3]) { for i in 6 { out[i] = i } out[1, 0] = out[0, 2] * 10 }"), "0 1 2 20 4 5");
  EXPECT_EQ(RunText("func f(s: i64[], out: i64[1]) { s[] = 3 out[0] = s[0] }"), "3");
}

TEST(Interpret, MemoryOfAnAllocIsPoisoned) {
  EXPECT_EQ(RunText("func f(out: f32[1]) { alloc t: f32[2] local { out[0] = t[1] } }"), "nan_f32");
  EXPECT_EQ(RunText("func f(out: i64[2]) { for i in 2 { alloc t: i64[1] workspace { out[i] = t[0] t[0] = 5 } } }"),
            "-1 -1");
}

TEST(Interpret, VectorsGoElementByElement) {
  EXPECT_EQ(RunText("func f(out: i64[8]) { out[ramp(1, 2, 4)] = ramp(10, 1, 4) * broadcast(2, 4) }"),
            "0 20 0 22 0 24 0 26");
  EXPECT_EQ(RunText("func f(out: f32[4]) { out[ramp(0, 1, 4)] = ramp(0.5f32, -1f32, 4) }"),
            "0.5f32 -0.5f32 -1.5f32 -2.5f32");
  EXPECT_EQ(RunText("func f(out: i8[4]) { out[ramp(0, 1, 4)] = ramp(126i8, 1i8, 4) }"), "126i8 127i8 -128i8 -127i8");
  EXPECT_EQ(RunText("func f(out: i64[4]) { let v = ramp(0, 3, 4) { out[ramp(0, 1, 4)] = select(v < broadcast(5, 4), v, "
                    "broadcast(-1, 4)) } }"),
            "0 3 -1 -1");
  EXPECT_EQ(RunText("func f(out: i64[2,4]) { out[1, ramp(3, -1, 4)] = ramp(0, 1, 4) }"), "0 0 0 0 3 2 1 0");
}

TEST(Interpret, AVectorStoreReadsAllElementsBeforeItWrites) {
  EXPECT_EQ(RunText("func f(out: i64[5]) { for i in 5 { out[i] = i } out[ramp(1, 1, 4)] = out[ramp(0, 1, 4)] }"),
            "0 0 1 2 3");
  EXPECT_EQ(RunText("func f(out: i64[4]) {"
                    " out[ramp(0, 1, 4) where out[broadcast(0, 4)] == broadcast(0, 4)] = ramp(1, 1, 4) }"),
            "1 2 3 4");
  EXPECT_EQ(RunText("func f(out: i64[4]) { out[out[broadcast(0, 4)] + ramp(0, 1, 4)] = ramp(1, 1, 4) }"), "1 2 3 4");
}

TEST(Interpret, IndicesAreComputedWhereTheMaskOfAVectorIsFalse) {
  const auto load = [](const std::string& access) {
    return RunText("func f(a: i64[3], b: i64[3], out: i64[4]) { out[ramp(0, 1, 4)] = " + access + " }");
  };
  EXPECT_THAT(load("a[b[ramp(-1, 1, 4)] where ramp(0, 1, 4) >= broadcast(1, 4)]"),
              HasSubstr("index -1 of dimension 0 is outside buffer 'b'"));
  EXPECT_EQ(load("a[b[broadcast(-1, 4)] where broadcast(out[0] == 1, 4)]"), "0 0 0 0");
  EXPECT_THAT(RunText("func f(b: i64[3], out: i64[4]) {"
                      " out[b[ramp(-1, 1, 4)] where ramp(0, 1, 4) >= broadcast(1, 4)] = ramp(0, 1, 4) }"),
              HasSubstr("index -1 of dimension 0 is outside buffer 'b'"));
}

TEST(Interpret, MasksGuardLoadsAndStores) {
  EXPECT_EQ(RunText("func f(a: i64[3], out: i64[4]) { for i in 3 { a[i] = i + 1 } "
                    "out[ramp(0, 1, 4)] = a[ramp(0, 1, 4) where ramp(0, 1, 4) < broadcast(3, 4)] }"),
            "1 2 3 0");
  EXPECT_EQ(RunText("func f(out: i64[3]) { out[ramp(0, 1, 4) where ramp(0, 1, 4) < broadcast(3, 4)] = ramp(7, 1, 4) }"),
            "7 8 9");
  EXPECT_EQ(RunText("func f(out: i64[2]) { for i in 9 { out[i where i < 2] = i + 1 } }"), "1 2");
}

TEST(Interpret, AMaskedStoreComputesAllElements) {
  EXPECT_THAT(RunText("func f(a: i64[3], out: i64[3]) { "
                      "out[ramp(0, 1, 4) where ramp(0, 1, 4) < broadcast(3, 4)] = a[ramp(0, 1, 4)] }"),
              HasSubstr("index 3 of dimension 0 is outside buffer 'a' (extent 3)"));
}

TEST(Interpret, HalfIsRoundedInMemory) {
  EXPECT_EQ(RunText("func f(h: f16[1], out: f32[1]) { h[0] = f16(2049f32) out[0] = f32(h[0]) }"), "2048.0f32");
  EXPECT_EQ(RunText("func f(h: bf16[1], out: f32[1]) { h[0] = bf16(257f32) out[0] = f32(h[0]) }"), "256.0f32");
}

TEST(Interpret, EveryAccessIsChecked) {
  EXPECT_EQ(RunText("func f(out: i64[2,3]) { out[0, 3] = 1 }"),
            "func 'f': index 3 of dimension 1 is outside buffer 'out' (extent 3)");
  EXPECT_EQ(RunText("func f(out: i64[2,3]) { out[6] = 1 }"),
            "func 'f': index 6 of dimension 0 is outside buffer 'out' (extent 6)");
  EXPECT_EQ(RunText("func f(out: i64[2]) { for i in 2 { out[i - 1] = 1 } }"),
            "func 'f': index -1 of dimension 0 is outside buffer 'out' (extent 2)");
  EXPECT_THAT(RunText("func f(a: i64[2], out: i64[1]) { for i in a[2] { out[0] = 1 } }"), HasSubstr("index 2 of"));
  EXPECT_THAT(RunText("func f(a: i64[2], out: i64[1]) { if a[2] < 1 { out[0] = 1 } }"), HasSubstr("index 2 of"));
  EXPECT_THAT(RunText("func f(a: i64[2], out: i64[1]) { let x = a[2] { out[0] = 1 } }"), HasSubstr("index 2 of"));
  EXPECT_THAT(RunText("func f(a: i64[2], out: i64[1]) { out[a[0] + a[5]] = 1 }"), HasSubstr("index 5 of"));
}

TEST(Interpret, RejectsArgumentsThatDoNotFit) {
  const auto func = ParseFunc("func f(a: i64[2]) { a[0] = 1 }");
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Interpret(*func, {}).message(), "func 'f': got 0 arguments for 1 parameters");
  Bytes small(8);
  const std::vector<std::span<std::byte>> args = {small};
  EXPECT_EQ(Interpret(*func, args).message(), "func 'f': argument 'a' has 8 bytes, but its parameter has 16");
}

TEST(Interpret, RejectsWhatItCannotRun) {
  const Buffer out = MakeBuffer("out", DType::kInt64, {1}), other = MakeBuffer("other", DType::kInt64, {1});
  Bytes memory(8);
  const std::vector<std::span<std::byte>> args = {memory};
  const auto verdict = [&](Stmt body) {
    return std::string(Interpret(Func{"f", {out}, std::move(body)}, args).message());
  };
  EXPECT_EQ(verdict(MakeStore(out, {0}, MakeVar("x"))), "func 'f': variable 'x' is not bound");
  EXPECT_EQ(verdict(MakeStore(other, {0}, 1)), "func 'f': buffer 'other' is neither a parameter nor allocated");
  EXPECT_EQ(verdict({}), "func 'f': a statement is missing");
  const Stmt after_loop =
      MakeBlock({MakeFor("i", 1, LoopKind::kSerial, MakeBlock({})), MakeStore(out, {MakeVar("i")}, 1)});
  EXPECT_EQ(verdict(after_loop), "func 'f': variable 'i' is not bound");
  EXPECT_THAT(RunText("func f(out: f16[1]) { out[0] = 1f16 + 1f16 }"),
              HasSubstr("computes in a type that is only for storage"));
  EXPECT_THAT(RunText("func f(out: i64[1]) { alloc t: i64[1000000000000] local { out[0] = 1 } }"),
              HasSubstr("alloc of 't' needs 8000000000000 bytes"));
}

}  // namespace
}  // namespace hone::ir
