// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/target.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/roofline.h"
#include "compiler/target/cpu.h"
#include "compiler/target/microarchitectures.h"

namespace hone::target {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// All that there is to say of a device that is not here.
constexpr const char* kAnOpenClDevice =
    "opencl -device=A-GPU -units=1 -lanes=256 -width=8 -shared=32768 -gain=4 -registers=1024 -l1=32768 -l2=524288 "
    "-vector=128";

TEST(Targets, PrintsAndParsesBack) {
  for (const char* text :
       {"cpu", "cpu -threads=3", "x86_64 -mcpu=znver4 -threads=2", "x86_64 -mcpu=znver4 -mattr=-avx512f",
        "arm64 -mcpu=cortex-a76 -threads=4 -l2=524288", "arm64 -mattr=+dotprod", "arm64", "opencl", kAnOpenClDevice,
        "opencl -units=12 -lanes=1024", "opencl -width=32 -shared=49152 -registers=512 -l1=1 -l2=2 -vector=64"}) {
    const auto target = ParseTarget(text);
    ASSERT_TRUE(target.ok()) << text << ": " << target.status();
    const auto again = ParseTarget(Print(*target));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(Print(*again), Print(*target));
  }
}

TEST(Targets, TheTextIsCanonical) {
  EXPECT_EQ(Print(*ParseTarget("x86_64  -threads=2 -mcpu=haswell -mattr=+avx2,-gfni,+fma")),
            Print(*ParseTarget("x86_64 -mcpu=haswell -threads=2")));
  EXPECT_EQ(Print(*ParseTarget("x86_64 -mcpu=haswell -mattr=+gfni,-bmi2 -threads=3")),
            "x86_64 -mcpu=haswell -mattr=-bmi2,+gfni -threads=3 -l1=32768 -l2=262144 -l3=8388608");
  EXPECT_EQ(Print(*ParseTarget(
                "opencl -vector=128 -l2=524288 -l1=32768 -registers=1024 -gain=4 -shared=32768 -width=8 -lanes=256 "
                "-units=1 -device=A-GPU")),
            kAnOpenClDevice);
}

TEST(Targets, CapabilitiesFollowTheCpu) {
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=znver4")->vector_bits, 512);
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=haswell")->vector_bits, 256);
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=haswell")->vector_registers, 16);
  EXPECT_EQ(ParseTarget("arm64 -mcpu=cortex-a76")->vector_bits, 128);
  EXPECT_EQ(ParseTarget("arm64 -mcpu=cortex-a76")->vector_registers, 32);
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=znver4 -mattr=-avx512vl")->vector_bits, 256);
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=sapphirerapids")->core.multiply_adds, 2);
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=znver4")->core.multiply_adds, 1);
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=znver4 -mattr=-avx512vl")->core.multiply_adds, 2);
}

std::vector<std::string_view> InstructionsOf(std::string_view text) {
  std::vector<std::string_view> names;
  const Target target = ParseTarget(text).value();
  for (const ir::TensorInstruction i : target.tensor_instructions) names.push_back(ir::EntryOf(i).name);
  return names;
}

TEST(Targets, TensorInstructionsFollowTheFeatures) {
  using ::testing::ElementsAre, ::testing::IsEmpty;
  EXPECT_THAT(InstructionsOf("x86_64 -mcpu=znver4"), ElementsAre("vpdpbusd_512", "vpdpbusd_256"));
  EXPECT_THAT(InstructionsOf("x86_64 -mcpu=alderlake"), ElementsAre("vpdpbusd_256"));
  EXPECT_THAT(InstructionsOf("x86_64 -mcpu=haswell"), IsEmpty());
  EXPECT_THAT(InstructionsOf("x86_64 -mcpu=znver4 -mattr=-avx512vnni"), IsEmpty());
  EXPECT_THAT(InstructionsOf("x86_64 -mcpu=znver4 -mattr=-avx512f"), IsEmpty());
  EXPECT_THAT(InstructionsOf("arm64"), IsEmpty());
  EXPECT_THAT(InstructionsOf("arm64 -mattr=+dotprod"), ElementsAre("udot", "sdot"));
  EXPECT_THAT(InstructionsOf("arm64 -mcpu=cortex-a710"), ElementsAre("udot", "sdot", "usdot"));
  EXPECT_THAT(InstructionsOf("opencl"), IsEmpty());
}

TEST(Targets, AnOpenClDeviceHasLanesAndACpuHasNone) {
  const Target device = ParseTarget("opencl -lanes=64 -registers=512 -vector=128").value();
  EXPECT_TRUE(device.facts().has_grid);
  EXPECT_EQ(device.hierarchy.max_lanes, 64);
  EXPECT_EQ(device.memory.local_bytes, 512);
  EXPECT_EQ(device.vector_registers, 32);
  EXPECT_FALSE(ParseTarget("arm64")->facts().has_grid);
}

TEST(Targets, CudaIsAnArchitectureAndWhatItsDevicesHave) {
  const Target orin = ParseTarget("cuda:sm_87").value();
  EXPECT_EQ(Print(orin), Print(*ParseTarget("cuda -arch=sm_87")));
  EXPECT_THAT(Print(orin), HasSubstr("cuda -arch=sm_87 -units=16 "));
  EXPECT_TRUE(orin.facts().has_grid);
  EXPECT_EQ(orin.hierarchy.lane_width, 32);
  EXPECT_EQ(orin.hierarchy.shuffle_lanes, 32);
  EXPECT_EQ(ParseTarget("cuda:sm_70")->hierarchy.shuffle_lanes, 32);
  EXPECT_EQ(ParseTarget("cuda:sm_62")->hierarchy.shuffle_lanes, 0);
  EXPECT_EQ(ParseTarget("opencl -width=32")->hierarchy.shuffle_lanes, 0);
  EXPECT_EQ(orin.memory.async_copy_bytes, 16);
  EXPECT_EQ(ParseTarget("cuda:sm_75")->memory.async_copy_bytes, 0);
  EXPECT_EQ(ParseTarget("cuda:sm_90")->memory.shared_bytes, 227 << 10);
  EXPECT_EQ(ParseTarget("cuda:sm_90")->memory.default_shared_bytes, 48 << 10);
  EXPECT_EQ(ParseTarget("cuda:sm_90 -shared=32768")->memory.default_shared_bytes, 32768);
  EXPECT_EQ(ParseTarget("opencl -shared=65536")->memory.default_shared_bytes, 65536);
  EXPECT_EQ(ParseTarget("cuda:sm_90 -units=114")->hierarchy.units, 114);
  EXPECT_EQ(DeviceSelector(*ParseTarget("cuda:sm_90 -device=H200")), "cuda:H200");
  EXPECT_FALSE(SameMachine(*ParseTarget("cuda:sm_75"), *ParseTarget("cuda:sm_87")));
}

// "CUDA C++ Programming Guide", "Technical Specifications per Compute Capability"; but sm_80 and sm_90, which have 164
// and 228 KB of shared memory, as the models of default schedules were fitted.
TEST(Targets, CudaUnitsHaveTheirDocumentedLimits) {
  struct Unit {
    const char* word;
    int lanes, groups;
    int64_t registers, shared_kilobytes;
  };
  const Unit units[] = {
      {"cuda:sm_53", 2048, 32, 32768, 64},  {"cuda:sm_60", 2048, 32, 65536, 64},  {"cuda:sm_61", 2048, 32, 65536, 96},
      {"cuda:sm_62", 2048, 32, 32768, 64},  {"cuda:sm_70", 2048, 32, 65536, 96},  {"cuda:sm_72", 2048, 32, 65536, 96},
      {"cuda:sm_75", 1024, 16, 65536, 64},  {"cuda:sm_80", 2048, 32, 65536, 200}, {"cuda:sm_86", 1536, 16, 65536, 100},
      {"cuda:sm_87", 1536, 16, 65536, 164}, {"cuda:sm_89", 1536, 24, 65536, 100}, {"cuda:sm_90", 2048, 32, 65536, 200},
      {"cuda:sm_90a", 2048, 32, 65536, 200}};
  ASSERT_EQ(kCudaEntry.words.size(), 1 + std::size(units));
  for (const Unit& unit : units) {
    const Target target = ParseTarget(unit.word).value();
    EXPECT_EQ(target.hierarchy.unit_lanes, unit.lanes) << unit.word;
    EXPECT_EQ(target.hierarchy.unit_groups, unit.groups) << unit.word;
    EXPECT_EQ(target.memory.group_registers, unit.registers) << unit.word;
    EXPECT_EQ(target.memory.unit_shared_bytes, unit.shared_kilobytes << 10) << unit.word;
  }
}

// Code for sm_90a alone is for devices that are sm_90.
TEST(Targets, CudaAloneIsTheDeviceOfThisMachine) {
  void* const driver = dlopen(HONE_FAKE_CUDA, RTLD_NOW);  // which a name without a folder finds from now on
  ASSERT_NE(driver, nullptr) << dlerror();
  for (const auto& [device, architecture] :
       {std::pair("53", "sm_53"), {"88", "sm_87"}, {"90", "sm_90a"}, {"100", "sm_90"}}) {
    setenv("HONE_FAKE_CUDA_ARCH", device, 1);
    EXPECT_EQ(ParseTarget("cuda")->cpu, architecture) << device;
  }
  setenv("HONE_FAKE_CUDA_ARCH", "90", 1);
  setenv("HONE_FAKE_CUDA_VERSION", "11080", 1);
  EXPECT_EQ(ParseTarget("cuda")->cpu, "sm_90") << "this driver compiles nothing for sm_90a";
  setenv("HONE_FAKE_CUDA_VERSION", "12000", 1);
  EXPECT_EQ(ParseTarget("cuda")->cpu, "sm_90a");
  unsetenv("HONE_FAKE_CUDA_VERSION");
  for (const char* full_or_busy : {"2", "46"}) {
    setenv("HONE_FAKE_CUDA_RETAIN", full_or_busy, 1);
    EXPECT_EQ(ParseTarget("cuda")->cpu, "sm_90a") << "nothing is run";
  }
  unsetenv("HONE_FAKE_CUDA_RETAIN");
  EXPECT_EQ(ParseTarget("cuda -device=fake")->device, "fake");
  EXPECT_EQ(TargetOfDevice("cuda:Fake CUDA", 4)->device, "Fake-CUDA");
  setenv("HONE_FAKE_CUDA_ARCH", "120", 1);
  setenv("HONE_FAKE_CUDA_SHARED", "101376", 1);
  const Target smaller = ParseTarget("cuda").value();
  EXPECT_EQ(smaller.cpu, "sm_90");
  EXPECT_EQ(smaller.memory.shared_bytes, 101376) << "of a group, less than others of the architecture have";
  EXPECT_EQ(Print(*ParseTarget(Print(smaller))), Print(smaller));
  unsetenv("HONE_FAKE_CUDA_SHARED");
  unsetenv("HONE_FAKE_CUDA_ARCH");
  dlclose(driver);
}

// The typical one is for machines without any.
TEST(Targets, AMissingDeviceIsAnError) {
  void* const driver = dlopen(HONE_FAKE_CUDA, RTLD_NOW);
  ASSERT_NE(driver, nullptr) << dlerror();
  const auto error = [](const std::string& text) { return std::string(ParseTarget(text).status().message()); };
  for (const char* text : {"cuda -device=nix", "cuda -device=1"}) {
    EXPECT_THAT(error(text), AllOf(HasSubstr("the devices are: 0 'Fake CUDA device'"), HasSubstr("cuda -arch=sm_87")));
  }
  setenv("HONE_FAKE_CUDA_ARCH", "52", 1);
  EXPECT_THAT(error("cuda"), HasSubstr("'Fake CUDA device' is sm_52, older than sm_53"));
  setenv("HONE_FAKE_CUDA_INIT", "999", 1);
  EXPECT_THAT(error("cuda"), HasSubstr("NVIDIA's driver does not start"));
  EXPECT_EQ(ParseTarget("cuda -arch=sm_87 -device=nix")->device, "nix") << "which asks no driver";
  setenv("HONE_FAKE_CUDA_INIT", "100", 1);  // there is none
  EXPECT_EQ(Print(*ParseTarget("cuda")), Print(TypicalTarget(Kind::kCuda)));
  EXPECT_FALSE(ParseTarget("cuda -device=0").ok());
  unsetenv("HONE_FAKE_CUDA_INIT");
  unsetenv("HONE_FAKE_CUDA_ARCH");
  dlclose(driver);
  EXPECT_THAT(error("opencl -device=No-Such-Device"), HasSubstr("give all its numbers"));
  EXPECT_THAT(error("opencl -device=No-Such-Device -lanes=64"), HasSubstr("-units= -lanes= -width="));
}

// Rounded factors are for those who ask.
TEST(Targets, Tf32IsAnOption) {
  EXPECT_FALSE(AllowsTf32(*ParseTarget("cuda:sm_90")));
  const Target allowed = ParseTarget("cuda -arch=sm_90 -tf32").value();
  EXPECT_TRUE(AllowsTf32(allowed));
  EXPECT_THAT(Print(allowed), HasSubstr("cuda -arch=sm_90 -tf32 -units=132 "));
  EXPECT_EQ(Print(*ParseTarget(Print(allowed))), Print(allowed));
  EXPECT_TRUE(AllowsTf32(*ParseTarget("cuda:sm_80 -tf32")));
  EXPECT_TRUE(SameMachine(allowed, *ParseTarget("cuda:sm_90")));
  EXPECT_EQ(ParseTarget("cuda:sm_90")->tensor_instructions.size(), 2U);  // of halves
  EXPECT_EQ(ParseTarget("cuda:sm_90a")->tensor_instructions.size(), 4U);
  EXPECT_TRUE(ParseTarget("cuda:sm_75")->tensor_instructions.empty());
}

TEST(Targets, OverlappingLaunchesAreAnOption) {
  EXPECT_FALSE(ParseTarget("cuda:sm_90a")->hierarchy.overlapping_launches);
  const Target overlapping = ParseTarget("cuda:sm_90a -tf32 -overlap").value();
  EXPECT_TRUE(overlapping.hierarchy.overlapping_launches);
  EXPECT_THAT(Print(overlapping), HasSubstr("cuda -arch=sm_90a -tf32 -overlap -units=132 "));
  EXPECT_EQ(Print(*ParseTarget(Print(overlapping))), Print(overlapping));
  EXPECT_TRUE(SameMachine(overlapping, *ParseTarget("cuda:sm_90a")));
}

TEST(Targets, ErrorsListThePossibleValues) {
  const std::pair<const char*, const char*> cases[] = {
      {"gpu", "no kind 'gpu'; there are cpu, x86_64, arm64, arm, opencl, cuda, cuda:sm_53"},
      {"x86_64 -mcpu=pentium9", "no CPU 'pentium9' for x86_64; there are haswell broadwell"},
      {"arm64 -mcpu=haswell", "no CPU 'haswell' for aarch64; there are cortex-a35"},
      {"x86_64 -mcpu=nehalem", "no CPU 'nehalem'"},
      {"cpu -threads=0", "must be a positive number"},
      {"cpu -threads", "must be a positive number"},
      {"cpu -l2=99999999999999999999", "must be a positive number"},
      {"cpu -fast", "no option '-fast'; there are -mcpu= -mattr= -threads= -l1="},
      {"cuda -arch=sm_12", "no architecture 'sm_12' for cuda; there are sm_53 sm_60"},
      {"cuda:sm_87 -threads=2", "no option '-threads'; there are -arch= -device= -tf32 -overlap -units="},
      {"cuda:sm_75 -tf32", "sm_75 has no TF32 instructions; architectures from sm_80 on have them"},
      {"cuda:sm_90 -tf32=yes", "-tf32 takes no value, but has 'yes'"},
      {"cuda:sm_90 -overlap=yes", "-overlap takes no value, but has 'yes'"},
      {"cuda:sm_87 -overlap", "sm_87 cannot overlap launches; architectures from sm_90 on can"},
      {"cuda:sm_86 -lanes=1", "-lanes=1 must be a multiple of 32 up to 1024"},
      {"cuda:sm_86 -lanes=48", "-lanes=48 must be a multiple of 32 up to 1024"},
      {"cuda:sm_86 -lanes=4096", "-lanes=4096 must be a multiple of 32 up to 1024"},
      {"cuda:sm_86 -shared=10000000", "-shared=10000000: a group has at most 101376 bytes on sm_86"},
      {"opencl -lanes=1", "-lanes=1: groups for OpenCL have at least 2 lanes"},
      {"opencl -threads=2", "no option '-threads'; there are -device= -units="},
      {"arm64 -mattr=+avx2", "aarch64 has no feature 'avx2'; there are bf16"},
      {"arm64 -mattr=sve", "must be a list like +FEATURE,-FEATURE; 'sve' has no + or -"},
      {"x86_64 -mcpu=haswell -mattr=-avx", "lacks avx; Hone's x86-64 kernels need AVX2 and FMA"},
      {"arm64 -mcpu=neoverse-v1 -mattr=-neon", "lacks neon; Hone's arm64 kernels need NEON"}};
  for (const auto& [text, message] : cases) {
    const auto target = ParseTarget(text);
    ASSERT_FALSE(target.ok()) << text;
    EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(target.status().message()), HasSubstr(message));
  }
}

TEST(Targets, EveryKindHasATypicalOneAndADevice) {
  EXPECT_EQ(TypicalTarget(Kind::kCpu).cpu, "x86-64-v3");
  EXPECT_EQ(DeviceSelector(TypicalTarget(Kind::kCpu)), "cpu");
  EXPECT_EQ(DeviceSelector(TypicalTarget(Kind::kOpenCl)), "opencl");
  EXPECT_EQ(DeviceSelector(*ParseTarget(kAnOpenClDevice)), "opencl:A-GPU");
  EXPECT_EQ(TargetOfDevice("opencl", 4)->kind, Kind::kOpenCl);
  EXPECT_EQ(TargetOfDevice("fpga", 4).status().code(), absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<Target> here = TargetOfDevice("cpu", 3);
  EXPECT_TRUE(!here.ok() || Print(*here) == Print(*ParseTarget("cpu -threads=3")));
  for (const Kind kind : {Kind::kCpu, Kind::kOpenCl, Kind::kCuda}) {
    const std::string text = Print(TypicalTarget(kind));
    EXPECT_EQ(Print(*ParseTarget(text)), text);
  }
}

TEST(Targets, ARooflineIsMeasuredOnTheDeviceThatTheTargetNames) {
  EXPECT_EQ(MeasureRoofline(*ParseTarget(kAnOpenClDevice), 1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_GT(MeasureRoofline(Target(), 1)->flops_per_second, 0);
}

TEST(Targets, SameMachineWhateverItsThreads) {
  EXPECT_TRUE(SameMachine(*ParseTarget("x86_64 -mcpu=znver4"), *ParseTarget("x86_64 -mcpu=znver4 -threads=9")));
  EXPECT_FALSE(SameMachine(*ParseTarget("x86_64 -mcpu=znver4"), *ParseTarget("x86_64 -mcpu=znver3")));
  Target other = ParseTarget(kAnOpenClDevice).value();
  other.device = "Another-GPU";
  EXPECT_FALSE(SameMachine(*ParseTarget(kAnOpenClDevice), other));
}

// All that the table says must be what the rest of the room can read.
TEST(Microarchitectures, EveryRowIsATarget) {
  for (const Microarchitecture& row : Microarchitectures()) {
    const std::string kind = std::string(EntryOf(row.family.arch).word);
    const auto target = ParseTarget(kind + " -mcpu=" + std::string(row.name));
    ASSERT_TRUE(target.ok()) << row.name << ": " << target.status();
    EXPECT_EQ(FindMicroarchitecture(row.family.arch, row.name), &row) << "a second row of this name";
    for (const std::string_view feature : FeaturesOf(row)) {
      EXPECT_TRUE(KnownFeatures(row.family.arch).contains(feature)) << row.name << ": " << feature;
    }
    for (const ModelRange& range : row.models) {
      if (range.first < 0) continue;
      const CoreId id{std::string(row.family.vendor), row.family.family, range.first};
      EXPECT_EQ(Identify(row.family.arch, id, FeaturesOf(row))->name, row.name);
    }
  }
}

}  // namespace
}  // namespace hone::target
