// SPDX-License-Identifier: Apache-2.0
// The runtime on other architectures: cross-compiled as a board's owner would do it, and run on an emulated CPU.
//
// Skips, with the reason, where the cross compiler or the emulator is missing. The build folders are kept between runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/temporary_folder.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::tests {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

struct Architecture {
  std::string name;     // of its folder in HONE_CROSS_BUILD_DIR and of the architecture, for messages
  std::string triplet;  // Debian's
  std::string emulator;
  CodeKind code;
  std::string target;  // first word of its targets
};

class CrossBuildTest : public ::testing::TestWithParam<Architecture> {
 protected:
  void SetUp() override {
    const Architecture& arch = GetParam();
    for (const std::string& tool :
         {arch.triplet + "-gcc", arch.triplet + "-g++", arch.emulator, std::string("cmake"), std::string("ninja")}) {
      if (RunCommand(fmt::format("command -v {}", tool)).exit_code != 0) GTEST_SKIP() << tool << " is not installed";
    }
    const CommandResult configured =
        RunCommand(fmt::format("cmake -G Ninja -S '{0}' -B '{1}' -DHONE_PARTS=runtime -DCMAKE_BUILD_TYPE=Release "
                               "-DCMAKE_TOOLCHAIN_FILE='{0}/cmake/{2}.cmake'",
                               HONE_SOURCE_DIR, Folder(), arch.triplet));
    ASSERT_EQ(configured.exit_code, 0) << configured.output;
    const CommandResult built = RunCommand(fmt::format("cmake --build '{}' -j2", Folder()));
    ASSERT_EQ(built.exit_code, 0) << built.output;
  }

  std::string Folder() const { return fmt::format("{}/{}", HONE_CROSS_BUILD_DIR, GetParam().name); }

  package::PackageContents Contents() const {
    package::PackageContents contents = TinyContents(CompileTinyKernels("", GetParam().triplet + "-gcc"));
    contents.programs[0].units[0].kind = GetParam().code;
    contents.programs[0].units[0].cpu_features = {"neon"};
    return contents;
  }

  CommandResult HoneRun(const std::string& arguments) const {
    return RunCommand(fmt::format("{} -L /usr/{} '{}/bin/hone-run' {}", GetParam().emulator, GetParam().triplet,
                                  Folder(), arguments));
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_P(CrossBuildTest, RunsAPackageOnAnEmulatedCpu) {
  WriteTinyPackage(folder_ / "tiny.hone", Contents());
  const std::vector<float> x = TinyInput();
  WriteWholeFile(folder_ / "x.bin", std::string(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)));
  for (const int threads : {1, 2}) {
    const CommandResult result = HoneRun(fmt::format(
        "{0}/tiny.hone --raw-in x={0}/x.bin --raw-out y={0}/y.bin --threads {1}", folder_.path().string(), threads));
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const std::string bytes = ReadWholeFile(folder_ / "y.bin");
    std::vector<float> y(bytes.size() / sizeof(float));
    std::memcpy(y.data(), bytes.data(), bytes.size());
    EXPECT_THAT(y, ElementsAreArray(TinyOutput())) << threads;
  }
}

TEST_P(CrossBuildTest, TakesTheProgramForItsCpuFromAPackageForSeveral) {
  package::PackageContents contents = TinyContents(CompileTinyKernels());
  AddProgram(contents, Contents().programs[0], GetParam().target);
  WriteTinyPackage(folder_ / "both.hone", contents);
  WriteWholeFile(folder_ / "x.bin", std::string(kRows * kColumns * sizeof(float), '\0'));
  const CommandResult result = HoneRun(fmt::format("{0}/both.hone --raw-in x={0}/x.bin", folder_.path().string()));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("target " + GetParam().target));
}

TEST_P(CrossBuildTest, NamesFeaturesThatTheCpuLacks) {
  package::PackageContents contents = Contents();
  contents.programs[0].units[0].cpu_features.push_back("avx2");
  WriteTinyPackage(folder_ / "wrong.hone", contents);
  const CommandResult result = HoneRun(folder_ / "wrong.hone");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("the code needs avx2 (unknown to this runtime), this CPU lacks it"));
}

TEST_P(CrossBuildTest, RefusesAPackageOfThisMachine) {
  WriteTinyPackage(folder_ / "host.hone", TinyContents(CompileTinyKernels()));
  const CommandResult result = HoneRun(folder_ / "host.hone");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("this machine is " + GetParam().name));
}

INSTANTIATE_TEST_SUITE_P(
    Architectures, CrossBuildTest,
    ::testing::Values(Architecture{"aarch64", "aarch64-linux-gnu", "qemu-aarch64-static", CodeKind::kAArch64, "arm64"},
                      Architecture{"armv7", "arm-linux-gnueabihf", "qemu-arm-static", CodeKind::kArm, "arm"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone::tests
