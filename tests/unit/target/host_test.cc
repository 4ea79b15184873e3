// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/target/fake_machine.h"

namespace hone::target {
namespace {

Target Detect(const tests::FakeMachine& machine) {
  const TemporaryFolder folder = machine.Write();
  return HostCpu(folder / "");
}

TEST(Host, RaspberryPi2Has32Bits) {
  const Target target = Detect(tests::RaspberryPi2());
  EXPECT_EQ(Print(target), "arm -mcpu=cortex-a7 -threads=4 -l1=32768 -l2=131072 -l3=524288");
  EXPECT_EQ(target.vector_bits, 128);
  EXPECT_EQ(target.vector_registers, 16);
}

// Most 32-bit systems for a Raspberry Pi 4 run on a 64-bit kernel, whose file has 64-bit names of features.
TEST(Host, A32BitProgramOnA64BitKernelKnowsItsCores) {
  const TemporaryFolder folder = tests::RaspberryPi4().Write();
  EXPECT_EQ(Print(HostCpu(folder / "", Arch::kArm)),
            "arm -mcpu=cortex-a72 -threads=4 -l1=32768 -l2=262144 -l3=1048576");
}

TEST(Host, RaspberryPi4SharesItsLastLevelCache) {
  EXPECT_EQ(Print(Detect(tests::RaspberryPi4())), "arm64 -mcpu=cortex-a72 -threads=4 -l1=32768 -l2=262144 -l3=1048576");
}

TEST(Host, RaspberryPi5) {
  const Target target = Detect(tests::RaspberryPi5());
  EXPECT_EQ(Print(target), "arm64 -mcpu=cortex-a76 -threads=4 -l1=65536 -l2=524288 -l3=2097152");
  EXPECT_EQ(target.vector_bits, 128);
}

TEST(Host, JetsonOrinHasTwoLastLevelCaches) {
  EXPECT_EQ(Print(Detect(tests::JetsonOrin())), "arm64 -mcpu=cortex-a78ae -threads=8 -l1=65536 -l2=262144 -l3=4194304");
}

TEST(Host, HardwareThreadsShareACoresCaches) {
  const Target target = Detect(tests::Zen4Server());
  EXPECT_EQ(Print(target), "x86_64 -mcpu=znver4 -threads=8 -l1=32768 -l2=1048576 -l3=67108864");
  EXPECT_EQ(target.vector_bits, 512);
  EXPECT_EQ(target.core.multiply_adds, 1);
}

TEST(Host, AffinityTakesThreadsAndCaches) {
  tests::FakeMachine machine = tests::Zen4Server();
  machine.allowed = "2-3,6";
  EXPECT_EQ(Print(Detect(machine)), "x86_64 -mcpu=znver4 -threads=2 -l1=32768 -l2=1048576 -l3=33554432");
}

TEST(Host, ThreadsAreNoMoreThanTheCpusThatAControlGroupLeaves) {
  tests::FakeMachine machine = tests::Zen4Server();
  for (const auto& [cpu_max, threads] :
       {std::pair("200000 100000", 2), {"150000 100000", 2}, {"10000 100000", 1}, {"max 100000", 8}}) {
    machine.cpu_max = cpu_max;
    EXPECT_EQ(Detect(machine).threads, threads) << cpu_max;
  }
}

TEST(Host, AVirtualMachineGetsItsShareOfTheSocketsCache) {
  const Target target = Detect(tests::SapphireRapidsVm());
  EXPECT_EQ(Print(target),
            "x86_64 -mcpu=sapphirerapids -mattr=-avx512fp16 -threads=2 -l1=49152 -l2=2097152 -l3=15728640");
}

// Seen on a rented machine: Sapphire Rapids that says it is model 167, which has narrower units.
TEST(Host, AModelThatContradictsItsFeaturesIsIgnored) {
  tests::FakeMachine machine = tests::SapphireRapidsVm();
  const auto show_as_rocket_lake = [&](const std::string& more) {
    for (std::string& core : machine.cores) {
      const size_t at = core.find("143");
      if (at != std::string::npos) core.replace(at, 3, "167");
      core.insert(core.find(" hypervisor"), more);
    }
  };
  show_as_rocket_lake("");
  EXPECT_EQ(Detect(machine).cpu, "icelake-server") << "AVX512-FP16 is hidden, too";
  show_as_rocket_lake(" avx512_fp16");
  EXPECT_EQ(Detect(machine).cpu, "sapphirerapids");
}

TEST(Host, MaskedVectorsAreNotUsed) {
  tests::FakeMachine machine = tests::Zen4Server();
  for (std::string& core : machine.cores) {
    for (size_t at = 0; (at = core.find(" avx512")) != std::string::npos;)
      core.erase(at, core.find_first_of(" \n", at + 1) - at);
  }
  const Target target = Detect(machine);
  EXPECT_EQ(target.cpu, "znver4");
  EXPECT_EQ(target.vector_bits, 256);
  EXPECT_EQ(target.core.multiply_adds, 2);
  EXPECT_THAT(target.features, ::testing::HasSubstr("-avx512f,"));
}

TEST(Host, TheFastestOfSeveralCores) {
  tests::FakeMachine machine = tests::Rk3588();
  EXPECT_EQ(Detect(machine).cpu, "cortex-a76");
  EXPECT_EQ(Detect(machine).threads, 4) << "the slow ones would hold up the fast ones";
  machine.allowed = "0-3";
  EXPECT_EQ(Detect(machine).cpu, "cortex-a55");
}

TEST(Host, AnUnknownCoreIsAGeneralOneWithItsFeatures) {
  tests::FakeMachine machine = tests::RaspberryPi5();
  for (std::string& core : machine.cores) core.replace(core.find("0xd0b"), 5, "0xfff");
  const Target arm = Detect(machine);
  EXPECT_EQ(arm.cpu, "generic");
  EXPECT_EQ(arm.features, "+dotprod,+fullfp16,+lse,+rcpc,+rdm");
  machine = tests::Zen4Server();
  for (std::string& core : machine.cores) core.replace(core.find("AuthenticAMD"), 12, "SomebodyElse");
  const Target x86 = Detect(machine);
  EXPECT_EQ(x86.cpu, "x86-64-v4");
  EXPECT_THAT(x86.features, ::testing::HasSubstr("+avx512vnni"));
}

TEST(Host, AnEmulatorShowsTheCoresOfAnotherMachine) {
  const TemporaryFolder folder = tests::Zen4Server().Write();
  const Target target = HostCpu(folder / "", Arch::kAArch64);
  EXPECT_EQ(target.arch, Arch::kAArch64);
  EXPECT_EQ(target.cpu, "generic");
  EXPECT_EQ(target.features, "");
  EXPECT_EQ(target.threads, 8);
  EXPECT_EQ(HostCpu(folder / "", Arch::kArm).cpu, "cortex-a7");
}

TEST(Host, ThisMachineIsOneThatParsesBack) {
  const Target target = HostCpu();
  const auto again = ParseTarget(Print(target));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Print(*again), Print(target));
  EXPECT_EQ(ParseTarget("cpu")->cpu, target.cpu);
}

}  // namespace
}  // namespace hone::target
