// SPDX-License-Identifier: Apache-2.0
// Tests of packing constants, by code for this machine and by the interpreter.
#include "deploy/package/pack_constants.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

namespace hone::package {
namespace {

constexpr int64_t kRows = 96, kColumns = 40;

ir::Workload PackedMatMul() {
  return ir::ParseWorkload(R"(workload "matmul"
input x: f32[12,96] in [-1, 1]
const w: f32[96,40] in [-1, 1]
t: f32[12,40] over i:12, j:40 = sum k:96 of x[i, k] * w[k, j]
output t
)")
      .value();
}

ir::Workload Convolution() {
  return ir::ParseWorkload(R"(workload "conv2d"
input x: f32[1,5,14,14] in [-1, 1]
const w: f32[7,5,3,3] in [-1, 1]
t: f32[1,7,12,12] over n:1, oc:7, h:12, v:12 = sum ic:5, kh:3, kw:3 of x[n, ic, h + kh, v + kw] * w[oc, ic, kh, kw]
output t
)")
      .value();
}

absl::StatusOr<std::vector<CompiledKernel>> Kernels(const ir::Workload& workload, const std::string& schedule) {
  const auto lookup = [&](const std::string&) -> absl::StatusOr<std::vector<RecordedSchedule>> {
    return std::vector<RecordedSchedule>{{.schedule = schedule, .provenance = "this test"}};
  };
  return CompileKernels(
      {&workload, 1}, {.target = target::ParseTarget("arm64").value(), .lookup = lookup, .threads = 1, .pinned = true});
}

absl::Status NoCodeOfItsOwn() { return absl::InvalidArgumentError("this CPU lacks avx2"); }

// The packed form of w, made by a packer for `host`.
std::vector<float> PackedBy(const absl::StatusOr<target::Target>& host, std::span<const CompiledKernel> kernels,
                            const std::vector<float>& w) {
  const absl::StatusOr<ConstantPacker> packer = ConstantPacker::Create(kernels, 1, host);
  if (!packer.ok()) return {};
  const std::span<const uint8_t> params[] = {{},
                                             {reinterpret_cast<const uint8_t*>(w.data()), w.size() * sizeof(float)}};
  const auto packed = packer->Pack(0, params);
  if (!packed.ok() || packed->size() != 1) return {};
  const std::span<const uint8_t> bytes = packed->front().bytes();
  std::vector<float> result(bytes.size() / sizeof(float));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

TEST(ConstantPackerTest, AMachineWithoutCodeOfItsOwnPacksTheSame) {
  const ir::Workload workload = PackedMatMul();
  const auto kernels = Kernels(workload, "pack w t 1/16 0 1%16\n");
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  std::vector<float> w(static_cast<size_t>(kRows * kColumns));
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i);
  const std::vector<float> compiled = PackedBy(target::ParseTarget("cpu"), *kernels, w);
  ASSERT_EQ(compiled.size(), static_cast<size_t>(3 * kRows * 16));
  EXPECT_EQ(compiled[1], 1);
  EXPECT_EQ(compiled[16], kColumns);
  EXPECT_EQ(PackedBy(NoCodeOfItsOwn(), *kernels, w), compiled);
}

// These weights are computed and not only moved, so a fused multiply-add would change their last bits.
TEST(ConstantPackerTest, TransformedWeightsAreTheSameEverywhere) {
  const ir::Workload workload = Convolution();
  std::vector<float> w(7 * 5 * 3 * 3);
  for (size_t i = 0; i < w.size(); ++i) w[i] = 1.0f / static_cast<float>(i + 3);
  for (const int size : {4, 6}) {
    const auto kernels = Kernels(workload, fmt::format("winograd t {}\n", size));
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    const std::vector<float> compiled = PackedBy(target::ParseTarget("cpu"), *kernels, w);
    EXPECT_GT(compiled.size(), w.size());
    EXPECT_EQ(PackedBy(NoCodeOfItsOwn(), *kernels, w), compiled) << size;
  }
}

}  // namespace
}  // namespace hone::package
