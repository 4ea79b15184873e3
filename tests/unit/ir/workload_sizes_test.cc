// SPDX-License-Identifier: Apache-2.0
// Workloads with open sizes: their text, their checks, canonical names, and numbers in place of sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/size.h"
#include "compiler/ir/text.h"
#include "compiler/ir/workload.h"

namespace hone::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kOpen = R"(workload "mean"
size n in [1, 512]
size b in [1, 8]
input x: f32[b,n * 4] in [-1, 1]
s: f32[b] over i:b = sum k:n * 4 of x[i, k]
y: f32[b] over j:b = s[j] / f32(n * 4)
output y
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

std::string VerdictOf(const Workload& workload) {
  const absl::Status status = Verify(workload);
  return status.ok() ? "legal" : std::string(status.message());
}

TEST(WorkloadSizes, TextRoundTrips) { EXPECT_EQ(Print(Parse(kOpen)), kOpen); }

TEST(WorkloadSizes, ParsesEveryPart) {
  const Workload workload = Parse(kOpen);
  EXPECT_EQ(VerdictOf(workload), "legal");
  EXPECT_THAT(workload.sizes, ElementsAre(OpenSize{"n", 1, 512}, OpenSize{"b", 1, 8}));
  const Size n = Size::Open({"n", 1, 512}), b = Size::Open({"b", 1, 8});
  EXPECT_TRUE(workload.params[0].buffer->shape == (Shape{b, n * 4}));
  EXPECT_EQ(workload.stages[0].axes[0].extent, b);
  EXPECT_EQ(workload.stages[0].reduce_axes[0].extent, n * 4);
  EXPECT_EQ(NumElements(*workload.params[0].buffer), 8 * 2048) << "room for the largest sizes";
}

TEST(WorkloadSizes, ParsesEveryOperationOnSizes) {
  const Workload workload = Parse(R"(workload "w"
size n in [1, 512]
input x: f32[(n + 1) // 2,n %% 4,min(n, 7),max(n, 7),n - 1]
s: f32[] = 0.0f32
output s
)");
  const Size n = Size::Open({"n", 1, 512});
  ASSERT_EQ(workload.params.size(), 1u);
  EXPECT_TRUE(workload.params[0].buffer->shape == (Shape{(n + 1) / 2, n % 4, Min(n, 7), Max(n, 7), n - 1}));
  EXPECT_EQ(Print(Parse(Print(workload))), Print(workload));
}

TEST(WorkloadSizes, ErrorsNameTheProblem) {
  EXPECT_THAT(ErrorOf("workload \"w\" size n in [4, 4]"), HasSubstr("size 'n' must have at least two values"));
  EXPECT_THAT(ErrorOf("workload \"w\" size n in [5, 4]"), HasSubstr("size 'n' must have at least two values"));
  EXPECT_THAT(ErrorOf("workload \"w\" size n in [0, x]"), HasSubstr("the largest value"));
  EXPECT_NE(ErrorOf("workload \"w\" input x: f32[n] s: f32[] = 0.0f32 output s"), "parses") << "n is not declared";
  EXPECT_NE(ErrorOf("workload \"w\" size n in [1, 4] input x: f32[m] s: f32[] = 0.0f32 output s"), "parses");
  EXPECT_THAT(ErrorOf("workload \"w\" size n in [1, 4] input x: f32[n < 3] s: f32[] = 0.0f32 output s"),
              HasSubstr("an extent must be arithmetic on sizes"));
  EXPECT_THAT(ErrorOf("workload \"w\" size n in [1, 1073741824] input x: f32[n,n] s: f32[] = 0.0f32 output s"),
              HasSubstr("more than 2^56 elements"));
}

TEST(WorkloadSizes, VerifyChecksSymbols) {
  Workload workload = Parse(kOpen);
  workload.sizes[1].max = 9;
  EXPECT_THAT(VerdictOf(workload), HasSubstr("size 'b' is not declared")) << "with this range";
  workload = Parse(kOpen);
  workload.sizes.pop_back();
  EXPECT_THAT(VerdictOf(workload), HasSubstr("size 'b' is not declared"));
  workload = Parse(kOpen);
  workload.sizes.push_back(workload.sizes[0]);
  EXPECT_THAT(VerdictOf(workload), HasSubstr("size 'n' is defined twice"));
  workload = Parse(kOpen);
  workload.sizes.push_back({"i", 1, 2});
  EXPECT_THAT(VerdictOf(workload), HasSubstr("axis 'i' is defined twice")) << "sizes and axes share their names";
  workload = Parse(kOpen);
  workload.sizes.push_back({"u", 5, 2});
  EXPECT_THAT(VerdictOf(workload), HasSubstr("the range of size 'u' is [5, 2]"));
}

TEST(WorkloadSizes, VerifyChecksExtents) {
  Workload workload = Parse(kOpen);
  workload.stages[1].axes[0].extent = Size::Open({"n", 1, 512});
  EXPECT_THAT(VerdictOf(workload), HasSubstr("the extents of its axes must be the shape of its buffer"));
  EXPECT_THAT(ErrorOf("workload \"w\" size n in [1, 4] input x: f32[n - 2] s: f32[] = 0.0f32 output s"),
              HasSubstr("'x' has a negative extent"))
      << "it may be negative";
}

TEST(WorkloadSizes, CanonicalizeRenamesByFirstUse) {
  const Workload canonical = Canonicalize(Parse(kOpen));
  EXPECT_EQ(Print(canonical), R"(workload "mean"
size n0 in [1, 8]
size n1 in [1, 512]
input p0: f32[n0,n1 * 4] in [-1, 1]
t0: f32[n0] over i0:n0 = sum i1:n1 * 4 of p0[i0, i1]
t1: f32[n0] over i2:n0 = t0[i2] / f32(n1 * 4)
output t1
)");
  EXPECT_EQ(VerdictOf(canonical), "legal");
  EXPECT_THAT(CanonicalSizeOrder(Parse(kOpen)), ElementsAre(1, 0));
  EXPECT_EQ(Print(Canonicalize(canonical)), Print(canonical));
}

TEST(WorkloadSizes, NamesDoNotChangeTheDigest) {
  constexpr std::string_view kOther = R"(workload "mean"
size rows in [1, 8]
size length in [1, 512]
input image: f32[rows,4 * length] in [-1, 1]
total: f32[rows] over c:rows = sum d:length * 4 of image[c, d]
y: f32[rows] over j:rows = total[j] / f32(length * 4)
output y
)";
  EXPECT_EQ(WorkloadDigest(Parse(kOther)), WorkloadDigest(Parse(kOpen)));
  std::string longer(kOpen);
  longer.replace(longer.find("512"), 3, "513");
  EXPECT_NE(WorkloadDigest(Parse(longer)), WorkloadDigest(Parse(kOpen))) << "ranges count";
}

// Sizes that get each other's names must not be renamed twice.
TEST(WorkloadSizes, CanonicalizeSwapsNames) {
  const Workload workload = Parse(R"(workload "w"
size n0 in [1, 5]
size n1 in [1, 9]
input x: f32[n1,n0 + 1]
s: f32[n1,n0] over i:n1, j:n0 = x[i, j] * f32(n1 - n0)
output s
)");
  EXPECT_EQ(Print(Canonicalize(workload)), R"(workload "w"
size n0 in [1, 9]
size n1 in [1, 5]
input p0: f32[n0,n1 + 1] in [-1, 1]
t0: f32[n0,n1] over i0:n0, i1:n1 = p0[i0, i1] * f32(n0 - n1)
output t0
)");
}

TEST(WorkloadSizes, UnusedSizesComeLast) {
  const Workload workload = Parse(R"(workload "w"
size u in [1, 2]
size n in [1, 9]
input x: f32[n]
s: f32[n] over i:n = x[i]
output s
)");
  EXPECT_THAT(CanonicalSizeOrder(workload), ElementsAre(1, 0));
  EXPECT_THAT(Canonicalize(workload).sizes, ElementsAre(OpenSize{"n0", 1, 9}, OpenSize{"n1", 1, 2}));
}

TEST(WorkloadSizes, WithSizesGivesAFixedWorkload) {
  const Workload fixed = WithSizes(Parse(kOpen), {{"n", 3}, {"b", 2}});
  EXPECT_EQ(VerdictOf(fixed), "legal");
  EXPECT_TRUE(fixed.sizes.empty());
  EXPECT_EQ(WorkloadDigest(fixed), WorkloadDigest(Parse(R"(workload "mean"
input x: f32[2,12] in [-1, 1]
s: f32[2] over i:2 = sum k:12 of x[i, k]
y: f32[2] over j:2 = s[j] / f32(3 * 4)
output y
)")));
  EXPECT_EQ(fixed.outputs[0], fixed.stages[1].buffer);
  const Workload same = Parse("workload \"w\" input x: f32[2] s: f32[2] over i:2 = x[i] output s");
  EXPECT_EQ(Print(WithSizes(same, {})), Print(same));
}

TEST(WorkloadSizesDeathTest, WithSizesNeedsEveryNumberInItsRange) {
  const Workload workload = Parse(kOpen);
  EXPECT_DEATH(WithSizes(workload, {{"n", 3}}), "");
  EXPECT_DEATH(WithSizes(workload, {{"n", 3}, {"b", 9}}), "");
  EXPECT_DEATH(WithSizes(workload, {{"n", 0}, {"b", 1}}), "");
}

}  // namespace
}  // namespace hone::ir
