// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include "device_agent/devices/cpu/cpu_device.h"
#include "device_agent/launcher/visit_convert.h"

namespace hone::agent {
namespace {

std::string HostArchitecture() {
  utsname host{};
  uname(&host);
  return host.machine;
}

v1::GoldenCheck CheckOnThisHost(const v1::Batch& batch, uint64_t number) {
  const CpuDevice device;
  VisitRunner visit_runner(device, {});
  return ToGoldenCheck(batch, MeasureBatch(visit_runner, batch, -1), number);
}

TEST(GoldenTest, IsRightOnThisHostAndHasATime) {
  const std::optional<v1::Batch> batch = GoldenBatch(HostArchitecture());
  ASSERT_TRUE(batch.has_value());
  const v1::GoldenCheck check = CheckOnThisHost(*batch, 3);
  EXPECT_TRUE(check.passed()) << check.reason();
  EXPECT_EQ(check.number(), 3u);
  EXPECT_EQ(check.kernel().size(), 64u);
  EXPECT_GT(check.median_seconds(), 1e-6);
  EXPECT_LT(check.mad_seconds(), check.median_seconds());
}

TEST(GoldenTest, SaysWhyItFails) {
  v1::Batch broken = *GoldenBatch(HostArchitecture());
  broken.set_artifact("no code");
  EXPECT_FALSE(CheckOnThisHost(broken, 1).passed());
  EXPECT_THAT(CheckOnThisHost(broken, 1).reason(), testing::HasSubstr("does not load"));
  v1::Batch wrong = *GoldenBatch(HostArchitecture());
  wrong.mutable_candidates(0)->mutable_kernel()->set_interface(
      "kernel exit\ninput f32[64,64]\ninput f32[64,64]\noutput f32[64,64]\nlaunch exit 0 0\n");
  EXPECT_FALSE(CheckOnThisHost(wrong, 1).passed());
  EXPECT_THAT(CheckOnThisHost(wrong, 1).reason(), testing::HasSubstr("no function 'exit'"));
}

TEST(GoldenTest, OtherMachinesHaveNone) {
  EXPECT_FALSE(GoldenBatch("riscv64").has_value());
  EXPECT_TRUE(GoldenBatch("opencl").has_value());
}

}  // namespace
}  // namespace hone::agent
