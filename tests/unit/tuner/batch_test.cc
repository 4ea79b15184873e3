// SPDX-License-Identifier: Apache-2.0
#include "tuner/batch.h"

#include <gtest/gtest.h>

#include <string>

#include "tuner/convert.h"

namespace hone::tuner {
namespace {

// A batch for a workload with an input `x` of 8 by 16 of that type, these stages and the output y.
Batch Described(const std::string& type, const std::string& stages) {
  const std::string text = "workload \"w\"\ninput x: " + type + "[8,16] in [-1, 1]\n" + stages + "output y\n";
  const auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return DescribeWorkload(*workload, target::ParseTarget("x86_64").value());
}

constexpr char kSum[] = "t: f32[8] over i:8 = sum k:16 of x[i, k]\n";
constexpr char kQuantized[] = "y: u8[8] over j:8 = u8(min(max(round(t[j] * 0.5f32), 0f32), 255f32))\n";

TEST(Batch, RoundedSumsOfFloatsMayFallOnTheOtherSide) {
  const Batch batch = Described("f32", std::string(kSum) + kQuantized);
  EXPECT_TRUE(batch.buffers.back().rounded);
  EXPECT_FALSE(batch.buffers.front().rounded);
  EXPECT_GT(batch.rtol, 0);
  const v1::Batch message = ToProto(batch);
  EXPECT_TRUE(message.buffers(1).rounded());
  EXPECT_GT(message.tolerance().rtol(), 0);
  const std::string moved = "q: u8[8] over m:8 = u8(t[m])\ny: i32[8] over j:8 = i32(q[7 - j])\n";
  EXPECT_TRUE(Described("f32", kSum + moved).buffers.back().rounded) << "also where others only move them";
}

TEST(Batch, OtherIntegersMustBeEqual) {
  // Integer sums are exact in any order, and so are values computed exactly from them.
  EXPECT_FALSE(Described("i8",
                         "t: i32[8] over i:8 = sum k:16 of i32(x[i, k])\n"
                         "y: u8[8] over j:8 = u8(round(f32(t[j]) * 0.5f32))\n")
                   .buffers.back()
                   .rounded);
  EXPECT_FALSE(Described("f32", "y: i32[8,16] over i:8, j:16 = i32(x[i, j] * 9f32)\n").buffers.back().rounded);
  // A position is no float, even if it is chosen by floats; nor is an element that is read at such a position.
  EXPECT_FALSE(
      Described("f32", std::string(kSum) + "y: i64[8] over j:8 = select(t[j] > 0f32, j, 7)\n").buffers.back().rounded);
  EXPECT_EQ(Described("i8", "y: i8[8,16] over i:8, j:16 = x[i, j]\n").rtol, 0);
}

}  // namespace
}  // namespace hone::tuner
