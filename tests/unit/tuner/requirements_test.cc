// SPDX-License-Identifier: Apache-2.0
// The devices that may run code for a target: the requirements that the back end states, compared with fingerprints.
#include <gtest/gtest.h>

#include "compiler/target/host.h"
#include "compiler/target/microarchitectures.h"
#include "device_agent/devices/cpu/host.h"
#include "device_agent/devices/device_convert.h"
#include "tests/unit/target/fake_machine.h"
#include "tracker/queue/devices.h"
#include "tuner/convert.h"

namespace hone::tuner {
namespace {

ir::Workload Workload() {
  return ir::ParseWorkload("workload \"w\"\ninput x: f32[8] in [-1, 1]\nt: f32[8] over i:8 = x[i]\noutput t\n").value();
}

v1::DeviceState Device(const tests::FakeMachine& machine, target::Arch arch) {
  const TemporaryFolder root = machine.Write();
  v1::DeviceState device;
  *device.mutable_fingerprint() = agent::ToProto(agent::DetectHost(root / ""));
  device.mutable_fingerprint()->set_architecture(std::string(target::MachineName(arch)));
  device.set_threads(4);
  return device;
}

bool MayRun(const target::Target& target, const v1::DeviceState& device) {
  return tracker::Matches(ToProto(DescribeWorkload(Workload(), target).requirements), "board", device);
}

bool MayRun(const std::string& target, const v1::DeviceState& device) {
  return MayRun(target::ParseTarget(target).value(), device);
}

TEST(Requirements, CodeNeverReachesAnX86DeviceWithoutItsExtensions) {
  const v1::DeviceState zen = Device(tests::Zen4Server(), target::Arch::kX86_64);
  const v1::DeviceState rapids = Device(tests::SapphireRapidsVm(), target::Arch::kX86_64);
  for (const v1::DeviceState& device : {zen, rapids}) {
    EXPECT_TRUE(MayRun("x86_64 -mcpu=haswell", device));
    EXPECT_TRUE(MayRun("x86_64 -mcpu=icelake-server", device));
    EXPECT_FALSE(MayRun("x86_64 -mcpu=sapphirerapids", device)) << "neither has avx512_fp16";
    EXPECT_FALSE(MayRun("arm64", device));
  }
  EXPECT_TRUE(MayRun("x86_64 -mcpu=sapphirerapids -mattr=-avx512fp16", rapids));
  EXPECT_TRUE(MayRun("x86_64 -mcpu=znver4", zen));
  EXPECT_FALSE(MayRun("x86_64 -mcpu=znver4", rapids)) << "it has no sse4a";
  EXPECT_FALSE(MayRun("x86_64 -mcpu=alderlake", zen)) << "it has no avx_vnni";
}

TEST(Requirements, CodeNeverReachesAnArmDeviceWithoutItsExtensions) {
  const v1::DeviceState pi4 = Device(tests::RaspberryPi4(), target::Arch::kAArch64);
  const v1::DeviceState pi5 = Device(tests::RaspberryPi5(), target::Arch::kAArch64);
  EXPECT_TRUE(MayRun("arm64", pi4));
  EXPECT_TRUE(MayRun("arm64 -mcpu=cortex-a72", pi4));
  EXPECT_FALSE(MayRun("arm64 -mcpu=cortex-a76", pi4));
  EXPECT_FALSE(MayRun("arm64 -mattr=+dotprod", pi4));
  EXPECT_TRUE(MayRun("arm64 -mcpu=cortex-a76", pi5));
  EXPECT_TRUE(MayRun("arm64 -mcpu=cortex-a78ae", pi5));
  EXPECT_FALSE(MayRun("arm64 -mcpu=neoverse-v2", pi5));
  EXPECT_FALSE(MayRun("x86_64", pi5));
}

TEST(Requirements, CodeForAMachineRunsThere) {
  const std::pair<tests::FakeMachine, target::Arch> machines[] = {
      {tests::RaspberryPi4(), target::Arch::kAArch64}, {tests::RaspberryPi5(), target::Arch::kAArch64},
      {tests::JetsonOrin(), target::Arch::kAArch64},   {tests::Rk3588(), target::Arch::kAArch64},
      {tests::Zen4Server(), target::Arch::kX86_64},    {tests::SapphireRapidsVm(), target::Arch::kX86_64}};
  for (const auto& [machine, arch] : machines) {
    const TemporaryFolder root = machine.Write();
    target::Target target = target::HostCpu(root / "");
    target.threads = 1;
    EXPECT_TRUE(MayRun(target, Device(machine, arch))) << Print(target);
  }
  const v1::DeviceState here = [] {
    v1::DeviceState device;
    *device.mutable_fingerprint() = agent::ToProto(agent::DetectHost());
    device.set_threads(1);
    return device;
  }();
  EXPECT_TRUE(MayRun("cpu -threads=1", here));
}

}  // namespace
}  // namespace hone::tuner
