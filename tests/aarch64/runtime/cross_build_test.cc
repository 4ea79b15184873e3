// SPDX-License-Identifier: Apache-2.0
// The runtime on 64-bit Arm: cross-compiled as a board's owner would do it, and run on an emulated CPU.
//
// Skips, with the reason, where the cross compiler or the emulator is missing. The build folder is kept between runs.
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

constexpr char kCompiler[] = "aarch64-linux-gnu-gcc";
constexpr char kEmulator[] = "qemu-aarch64-static -L /usr/aarch64-linux-gnu";

class CrossBuildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* tool :
         {"aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64-static", "cmake", "ninja"}) {
      if (RunCommand(fmt::format("command -v {}", tool)).exit_code != 0) GTEST_SKIP() << tool << " is not installed";
    }
    const CommandResult configured =
        RunCommand(fmt::format("cmake -G Ninja -S '{0}' -B '{1}' -DHONE_PARTS=runtime -DCMAKE_BUILD_TYPE=Release "
                               "-DCMAKE_TOOLCHAIN_FILE='{0}/cmake/aarch64-linux-gnu.cmake'",
                               HONE_SOURCE_DIR, HONE_CROSS_BUILD_DIR));
    ASSERT_EQ(configured.exit_code, 0) << configured.output;
    const CommandResult built = RunCommand(fmt::format("cmake --build '{}' -j2", HONE_CROSS_BUILD_DIR));
    ASSERT_EQ(built.exit_code, 0) << built.output;
  }

  package::PackageContents Contents() const {
    package::PackageContents contents = TinyContents(CompileTinyKernels("", kCompiler));
    contents.programs[0].units[0].kind = CodeKind::kAArch64;
    contents.programs[0].units[0].cpu_features = {"neon"};
    return contents;
  }

  CommandResult HoneRun(const std::string& arguments) const {
    return RunCommand(fmt::format("{} '{}/bin/hone-run' {}", kEmulator, HONE_CROSS_BUILD_DIR, arguments));
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_F(CrossBuildTest, RunsAPackageOnAnEmulatedCpu) {
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

TEST_F(CrossBuildTest, TakesTheProgramForItsCpuFromAPackageForSeveral) {
  package::PackageContents contents = TinyContents(CompileTinyKernels());
  AddProgram(contents, Contents().programs[0], "arm64");
  WriteTinyPackage(folder_ / "both.hone", contents);
  WriteWholeFile(folder_ / "x.bin", std::string(kRows * kColumns * sizeof(float), '\0'));
  const CommandResult result = HoneRun(fmt::format("{0}/both.hone --raw-in x={0}/x.bin", folder_.path().string()));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("target arm64"));
}

TEST_F(CrossBuildTest, NamesFeaturesThatTheCpuLacks) {
  package::PackageContents contents = Contents();
  contents.programs[0].units[0].cpu_features.push_back("avx2");
  WriteTinyPackage(folder_ / "wrong.hone", contents);
  const CommandResult result = HoneRun(folder_ / "wrong.hone");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("the code needs avx2 (unknown to this runtime), this CPU lacks it"));
}

TEST_F(CrossBuildTest, RefusesAPackageOfThisMachine) {
  WriteTinyPackage(folder_ / "host.hone", TinyContents(CompileTinyKernels()));
  const CommandResult result = HoneRun(folder_ / "host.hone");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("this machine is aarch64"));
}

}  // namespace
}  // namespace hone::tests
