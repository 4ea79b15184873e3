// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/match.h"
#include "compiler/ir/text.h"

namespace hone::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kMatmul = R"(workload "matmul"
input p0: f32[4,8] in [-1, 1]
const p1: f32[8,2] in [-0.5, 0.5]
input p2: f32[2] in [0, 1]
t0: f32[4,2] over i0:4, i1:2 = sum i2:8 of p0[i0, i2] * p1[i2, i1]
t1: f32[4,2] over i3:4, i4:2 = max(t0[i3, i4] + p2[i4], 0.0f32)
output t1
)";

Workload Parse(std::string_view text) {
  auto workload = ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return workload.ok() ? *workload : Workload();
}

std::string ErrorOf(std::string_view text) {
  const auto workload = ParseWorkload(text);
  return workload.ok() ? "parses" : std::string(workload.status().message());
}

TEST(Workload, TextRoundTrips) { EXPECT_EQ(Print(Parse(kMatmul)), kMatmul); }

TEST(Workload, ParsesEveryPart) {
  const Workload workload = Parse(kMatmul);
  ASSERT_EQ(workload.params.size(), 3u);
  EXPECT_EQ(workload.op, "matmul");
  EXPECT_EQ(workload.params[1].kind, ParamKind::kConstant);
  EXPECT_EQ(workload.params[1].low, -0.5);
  ASSERT_EQ(workload.stages.size(), 2u);
  EXPECT_EQ(workload.stages[0].reduction, Reduction::kSum);
  ASSERT_EQ(workload.stages[0].reduce_axes.size(), 1u);
  EXPECT_EQ(workload.stages[0].reduce_axes[0].extent, 8);
  EXPECT_EQ(workload.stages[1].reduction, Reduction::kNone);
  EXPECT_THAT(workload.outputs, ElementsAre(workload.stages[1].buffer));
  EXPECT_EQ(workload.FindStage(workload.stages[1].buffer.get()), &workload.stages[1]);
  EXPECT_EQ(workload.FindStage(workload.params[0].buffer.get()), nullptr);
}

TEST(Workload, RangeMayBeLeftOut) {
  const Workload workload = Parse("workload \"w\" input a: f32[] s: f32[] = a[] output s");
  EXPECT_EQ(workload.params[0].low, -1.0);
  EXPECT_EQ(workload.params[0].high, 1.0);
}

TEST(Workload, MaxIsAReductionOrAFunction) {
  const Workload workload =
      Parse("workload \"w\" input a: f32[3] x: f32[] = max k:3 of max(a[k], 0f32) y: f32[] = max(x[], 1f32) output y");
  EXPECT_EQ(workload.stages[0].reduction, Reduction::kMax);
  EXPECT_EQ(workload.stages[1].reduction, Reduction::kNone);
}

TEST(Workload, OddNamesRoundTrip) {
  const Workload workload =
      Parse("workload \"a \\\"b\\\"\" input `x/0`: f32[2] `min`: f32[2] over `over`:2 = `x/0`[`over`] output `min`");
  EXPECT_EQ(Print(Parse(Print(workload))), Print(workload));
}

TEST(Canonicalize, RenamesInOrderOfAppearance) {
  const Workload workload = Parse(R"(workload "w"
    input unused: f32[1]  input bias: f32[2] in [0, 3]  const weight: f32[2,8]
    acc: f32[2] over o:2 = sum r:8 of weight[o, r]
    result: f32[2] over q:2 = acc[q] + bias[q]
    output result)");
  EXPECT_THAT(CanonicalParamOrder(workload), ElementsAre(2, 1, 0));
  EXPECT_EQ(Print(Canonicalize(workload)), R"(workload "w"
const p0: f32[2,8] in [-1, 1]
input p1: f32[2] in [0, 3]
input p2: f32[1] in [-1, 1]
t0: f32[2] over i0:2 = sum i1:8 of p0[i0, i1]
t1: f32[2] over i2:2 = t0[i2] + p1[i2]
output t1
)");
}

TEST(Canonicalize, SwappedNamesDoNotCollide) {
  const Workload workload =
      Parse("workload \"w\" input t0: f32[2,3] p0: f32[3,2] over i1:3, i0:2 = t0[i0, i1] output p0");
  EXPECT_EQ(Print(Canonicalize(workload)),
            "workload \"w\"\ninput p0: f32[2,3] in [-1, 1]\n"
            "t0: f32[3,2] over i0:3, i1:2 = p0[i1, i0]\noutput t0\n");
}

TEST(Canonicalize, IsIdempotentAndLegal) {
  const Workload once = Canonicalize(Parse(kMatmul));
  EXPECT_TRUE(Verify(once).ok()) << Verify(once);
  EXPECT_EQ(Print(Canonicalize(once)), Print(once));
}

TEST(WorkloadDigest, DependsOnMeaningNotOnNames) {
  const std::string text(kMatmul);
  std::string renamed = text;
  for (size_t at; (at = renamed.find("i2")) != std::string::npos;) renamed.replace(at, 2, "k");
  for (size_t at; (at = renamed.find("p0")) != std::string::npos;) renamed.replace(at, 2, "lhs");
  EXPECT_EQ(WorkloadDigest(Parse(text)), WorkloadDigest(Parse(renamed)));
  std::string wider = text;
  wider.replace(wider.find("0.0f32"), 6, "0.5f32");
  EXPECT_NE(WorkloadDigest(Parse(text)), WorkloadDigest(Parse(wider)));
}

// Records are keyed by digests, so this text must have the same digest for ever and on every platform.
TEST(WorkloadDigest, IsPinned) {
  EXPECT_EQ(WorkloadDigest(Parse(kMatmul)), "0f1137e3ead8b12e8c6496e9e40ea3f9066369c5c065fbb340326bd4f26610f4");
}

TEST(CountFlops, CountsAMultiplyAddAsTwo) {
  // 4 * 2 * 8 multiply-adds, then one addition and one maximum for each of 4 * 2 elements.
  EXPECT_EQ(CountFlops(Parse(kMatmul)), 4 * 2 * 8 * 2 + 4 * 2 * 2);
}

TEST(Title, HasTheExtentsOfTheStageThatIteratesMost) {
  EXPECT_EQ(Title(Parse(kMatmul)), "matmul 4x2 (8)");
  EXPECT_EQ(Title(Parse("workload \"pad\" input a: f32[4] "
                        "b: f32[1,6] over i:1, j:6 = select(j >= 1 && j < 5, a[j - 1], 0f32) output b")),
            "pad 6");
  EXPECT_EQ(Title(Parse("workload \"dot\" input a: f32[4] b: f32[] = sum i:4 of a[i] * a[3 - i] output b")),
            "dot 1 (4)");
}

TEST(CountFlops, AddressingIsFree) {
  EXPECT_EQ(CountFlops(Parse("workload \"pad\" input a: f32[4] "
                             "b: f32[6] over i:6 = select(i >= 1 && i < 5, a[i - 1], 0f32) output b")),
            0);
  EXPECT_EQ(CountFlops(Parse("workload \"leaky\" input a: f32[4] "
                             "b: f32[4] over i:4 = select(a[i] < 0f32, a[i] * 0.1f32, a[i]) output b")),
            4 * 2);
  EXPECT_EQ(CountFlops(Parse("workload \"int8\" input a: i8[4] "
                             "b: i32[] = sum i:4 of i32(a[i]) * i32(a[3 - i]) output b")),
            4 * 2);
  EXPECT_EQ(CountFlops(Parse("workload \"fma\" input a: f32[4] "
                             "b: f32[4] over i:4 = fma(a[i], a[i], exp(a[i])) output b")),
            4 * 3);
}

TEST(Identity, IsNeutral) {
  const auto text = [](Reduction reduction, DType dtype) { return Print(Identity(reduction, {dtype, 1})); };
  EXPECT_EQ(text(Reduction::kSum, DType::kFloat32), "0.0f32");
  EXPECT_EQ(text(Reduction::kProd, DType::kInt32), "1i32");
  EXPECT_EQ(text(Reduction::kMax, DType::kFloat32), "-inf_f32");
  EXPECT_EQ(text(Reduction::kMin, DType::kFloat64), "inf_f64");
  EXPECT_EQ(text(Reduction::kMax, DType::kInt8), "-128i8");
  EXPECT_EQ(text(Reduction::kMin, DType::kInt8), "127i8");
  EXPECT_EQ(text(Reduction::kMax, DType::kUInt8), "0u8");
  EXPECT_EQ(text(Reduction::kMin, DType::kUInt64), "18446744073709551615u64");
  EXPECT_EQ(text(Reduction::kMin, DType::kBool), "true");
  EXPECT_EQ(Identity(Reduction::kMax, {DType::kFloat32, 8}).type().width, 8);
}

TEST(Combine, IsTheOperatorOfTheReduction) {
  const Expr a = MakeVar("a"), b = MakeVar("b");
  EXPECT_EQ(Print(Combine(Reduction::kSum, a, b)), "a + b");
  EXPECT_EQ(Print(Combine(Reduction::kProd, a, b)), "a * b");
  EXPECT_EQ(Print(Combine(Reduction::kMax, a, b)), "max(a, b)");
  EXPECT_EQ(Print(Combine(Reduction::kMin, a, b)), "min(a, b)");
}

TEST(ParseWorkload, RejectsBadText) {
  const std::pair<const char*, const char*> cases[] = {
      {"func", "line 1, column 1: expected 'workload' but found 'func'"},
      {"workload matmul", "expected the operator in double quotes but found 'matmul'"},
      {"workload \"w\" input a: f32[2] in [x, 1]", "expected the low end of the range (a number) but found 'x'"},
      {"workload \"w\" input a: f32[2] in [1e999, 1]", "is out of range for a double"},
      {"workload \"w\" output a", "there is no buffer 'a' here"},
      {"workload \"w\" t: f32[2] over i:2 = sum of 1f32 output t", "'of' is a reserved word"},
      {"workload \"w\" t: f32[2] over i = 1f32 output t", "expected ':' but found '='"},
      {"workload \"w\" t: f32[2] over i:2 = t[i] output t", "there is no buffer 't' here"},
      {"workload \"w\" t: f32[2] over i:2 = 1f32 u: f32[] = f32(i) output u", "there is no variable 'i' here"},
      {"workload \"w\" t: f32[3] over i:2 = 1f32 output t", "the extents of its axes must be the shape of its buffer"},
      {"workload \"w", "missing closing \""},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(ErrorOf(text), HasSubstr(message)) << text;
}

}  // namespace
}  // namespace hone::ir
