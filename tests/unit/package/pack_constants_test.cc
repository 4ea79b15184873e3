// Constants in the layout that kernels read, as this machine's code or the interpreter makes it.
#include "deploy/package/pack_constants.h"

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

// What a packer for that machine makes of w.
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
  const auto lookup = [](const std::string&) -> absl::StatusOr<std::vector<RecordedSchedule>> {
    return std::vector<RecordedSchedule>{{.schedule = "pack w t 1/16 0 1%16\n", .provenance = "this test"}};
  };
  const auto kernels = CompileKernels(
      {&workload, 1}, {.target = target::ParseTarget("arm64").value(), .lookup = lookup, .threads = 1, .pinned = true});
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  std::vector<float> w(static_cast<size_t>(kRows * kColumns));
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i);
  const std::vector<float> compiled = PackedBy(target::ParseTarget("cpu"), *kernels, w);
  ASSERT_EQ(compiled.size(), static_cast<size_t>(3 * kRows * 16));
  EXPECT_EQ(compiled[1], 1);
  EXPECT_EQ(compiled[16], kColumns);
  EXPECT_EQ(PackedBy(absl::InvalidArgumentError("this CPU lacks avx2"), *kernels, w), compiled);
}

}  // namespace
}  // namespace hone::package
