// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/ir/eval_text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

// Returns the first output for f32 arguments, or the error.
std::string RunWorkload(std::string_view text, const std::vector<std::vector<float>>& params) {
  const auto workload = ParseWorkload(text);
  if (!workload.ok()) return workload.status().ToString();
  std::vector<std::span<const std::byte>> args;
  for (const std::vector<float>& param : params) args.push_back(std::as_bytes(std::span(param)));
  const auto outputs = Interpret(*workload, args);
  if (!outputs.ok()) return std::string(outputs.status().message());
  const BufferNode& out = *workload->outputs[0];
  std::string result;
  for (int64_t i = 0; i < NumElements(out); ++i) {
    if (i != 0) result += " ";
    result += ElementText(out.dtype, (*outputs)[0].data() + i * SizeOf(out.dtype));
  }
  return result;
}

TEST(InterpretWorkload, Matmul) {
  EXPECT_EQ(RunWorkload(R"(workload "matmul" input a: f32[2,3] input b: f32[3,2]
                           c: f32[2,2] over i:2, j:2 = sum k:3 of a[i, k] * b[k, j]
                           d: f32[2,2] over p:2, q:2 = max(c[p, q], 10f32)
                           output d)",
                        {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}}),
            "22.0f32 28.0f32 49.0f32 64.0f32");
}

TEST(InterpretWorkload, EveryReduction) {
  const auto reduce = [](std::string_view name, const std::vector<float>& values) {
    return RunWorkload(
        fmt::format("workload \"r\" input a: f32[{0}] t: f32[] = {1} k:{0} of a[k] output t", values.size(), name),
        {values});
  };
  EXPECT_EQ(reduce("sum", {1, 2, 4}), "7.0f32");
  EXPECT_EQ(reduce("prod", {2, 3, 4}), "24.0f32");
  EXPECT_EQ(reduce("max", {-3, -1, -2}), "-1.0f32");
  EXPECT_EQ(reduce("min", {3, 1, 2}), "1.0f32");
  EXPECT_EQ(reduce("max", {1, std::nanf(""), 2}), "nan_f32");
  // The sum is computed in order and in the buffer's type, so adding ones to 2^24 has no effect.
  EXPECT_EQ(reduce("sum", {16777216, 1, 1, 1}), "16777216.0f32");
}

// Pairs ascend by their high half, which is signed; equal ones keep their order.
TEST(InterpretWorkload, Order) {
  const auto order = [](int places) {
    return RunWorkload(fmt::format(R"(workload "o" input a: f32[5]
                                      t: i64[{0}] over p:{0} = order r:5 of i64(a[r]) * 4294967296 + r
                                      u: i64[{0},2] over q:{0}, h:2 = select(h == 0, t[q] // 4294967296, t[q] & 255)
                                      output u)",
                                   places),
                       {{3, -1, 3, -7, -1}});
  };
  EXPECT_EQ(order(5), "-7 3 -1 1 -1 4 3 0 3 2");
  EXPECT_EQ(order(2), "-7 3 -1 1");
  EXPECT_EQ(RunWorkload("workload \"o\" input a: f32[1] t: i64[3] over p:3 = order r:3 of 7 - r output t", {{0}}),
            "7 6 5");
}

TEST(InterpretWorkload, EmptyExtents) {
  EXPECT_EQ(RunWorkload("workload \"e\" input a: f32[0] t: f32[] = max k:0 of a[k] output t", {{}}), "-inf_f32");
  EXPECT_EQ(RunWorkload("workload \"e\" input a: f32[0] t: f32[0] over i:0 = a[i] output t", {{}}), "");
}

TEST(InterpretWorkload, PaddingIsLazy) {
  EXPECT_EQ(RunWorkload(R"(workload "pad" input a: f32[2]
                           t: f32[4] over i:4 = select(i >= 1 && i < 3, a[i - 1], 0f32) output t)",
                        {{5, 6}}),
            "0.0f32 5.0f32 6.0f32 0.0f32");
}

TEST(InterpretWorkload, IntegersWrapInTheBuffersType) {
  EXPECT_EQ(RunWorkload("workload \"w\" t: i8[] = sum k:100 of 3i8 output t", {}), "44i8");
}

TEST(InterpretWorkload, OutputsKeepTheirOrder) {
  const auto workload = ParseWorkload("workload \"w\" a: i64[] = 1 b: i64[] = a[] + 1 output b output a");
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto outputs = Interpret(*workload, {});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(FromBytes<int64_t>((*outputs)[0].data()), 2);
  EXPECT_EQ(FromBytes<int64_t>((*outputs)[1].data()), 1);
}

TEST(InterpretWorkload, ErrorsNameTheStage) {
  EXPECT_EQ(RunWorkload("workload \"w\" input a: f32[2] t: f32[3] over i:3 = a[i] output t", {{1, 2}}),
            "workload \"w\": stage 't': index 2 of dimension 0 is outside buffer 'a' (extent 2)");
  EXPECT_THAT(RunWorkload("workload \"w\" input a: f32[2] t: f32[] = a[0] output t", {}), HasSubstr("got 0 arguments"));
  EXPECT_THAT(RunWorkload("workload \"w\" input a: f32[2] t: f32[] = a[0] output t", {{1}}),
              HasSubstr("argument 'a' has 4 bytes, but its parameter has 8"));
  EXPECT_THAT(RunWorkload("workload \"w\" t: f32[100000,100000] over i:100000, j:100000 = 0f32 output t", {}),
              HasSubstr("stage 't' needs 40000000000 bytes"));
}

TEST(InterpretWorkload, RefusesAnIllegalWorkload) {
  Workload workload{"w", {}, {}, {}};
  EXPECT_THAT(std::string(Interpret(workload, {}).status().message()), HasSubstr("it has no output"));
}

}  // namespace
}  // namespace hone::ir
