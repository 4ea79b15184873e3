// SPDX-License-Identifier: Apache-2.0
// The tiny package on an OpenCL device, through the C interface; skipped, with the reason, where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/temporary_folder.h"
#include "deploy/runtime/cache_folder.h"
#include "tests/unit/drivers/opencl_device.h"
#include "tests/unit/runtime/loaded_model.h"

namespace hone::tests {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::HasSubstr;

class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~EnvironmentVariable() {
    if (before_.has_value()) {
      setenv(name_.c_str(), before_->c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const std::string name_;
  std::optional<std::string> before_;
};

class OpenClBackendTest : public OpenClTest {
 protected:
  // A package of the OpenCL program alone, after `change`.
  std::string Write(const std::function<void(package::PackageProgram&)>& change = [](package::PackageProgram&) {}) {
    package::PackageContents contents = TinyContents("");
    package::PackageProgram program = TinyOpenClProgram();
    change(program);
    contents.programs = {};
    contents.metadata.programs = {};
    AddProgram(contents, program, "opencl");
    WriteTinyPackage(folder_ / "tiny.hone", contents);
    return folder_ / "tiny.hone";
  }
  std::string ErrorOf(const std::string& path, HoneStatus expected) {
    HoneModel* model = nullptr;
    EXPECT_EQ(hone_load(path.c_str(), nullptr, &model), expected) << hone_error();
    hone_free(model);
    return hone_error();
  }
  void ExpectItRuns(HoneModel* model) {
    ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
    ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
    EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
    EXPECT_THAT(OutputOf(model, 1), ElementsAreArray(x_));
    EXPECT_THAT(OutputOf(model, 2), ElementsAreArray(kBias));
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  EnvironmentVariable cache_{"XDG_CACHE_HOME", folder_ / "cache"};
  const std::vector<float> x_ = TinyInput();
  FloatTensor input_{x_.data(), {kRows, kColumns}};
};

TEST_F(OpenClBackendTest, RunsLaunchesAndCopiesInTheDevicesMemory) {
  const LoadedModel model(Write());
  EXPECT_STREQ(hone_target(model), "opencl");
  EXPECT_EQ(hone_threads(model), 1);
  for (int i = 0; i < 3; ++i) ExpectItRuns(model);
}

TEST_F(OpenClBackendTest, LaunchesTheGroupsOfTheCurrentSizes) {
  const LoadedModel model(Write(OpenRows));
  for (const int64_t rows : {4, 2, 0, 1, 4, 3, 3}) ExpectRowsRun(model, rows, TinyOutput());
}

TEST_F(OpenClBackendTest, SeesWhatTheCallerWritesBetweenRuns) {
  const LoadedModel model(Write());
  ExpectWritesAreSeen(model, x_);
}

TEST_F(OpenClBackendTest, ProfilesByTheDevicesClock) {
  const LoadedModel model(Write());
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  int64_t times[2] = {-1, -1};
  ASSERT_EQ(hone_run_profiled(model, times, 2), HONE_OK) << hone_error();
  EXPECT_THAT(times, Each(Gt(0)));
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
}

TEST_F(OpenClBackendTest, AWatchedRunShowsCopiesOfValues) {
  const LoadedModel model(Write(NameValues));
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  ExpectNamedValues(ValuesOfRun(model));
  ExpectItRuns(model);
}

// A kernel whose output has no elements has no launches.
TEST_F(OpenClBackendTest, AKernelThatLaunchesNothingTakesNoTime) {
  const LoadedModel model(Write(LaunchNothingForY));
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  int64_t times[2] = {-1, -1};
  ASSERT_EQ(hone_run_profiled(model, times, 2), HONE_OK) << hone_error();
  EXPECT_EQ(times[1], 0);
}

TEST_F(OpenClBackendTest, KeepsCompiledCodeUnlessTheDriverDoes) {
  const std::string path = Write();
  {
    const LoadedModel model(path);
  }
  const std::filesystem::path kept = folder_ / "cache/hone";
  EXPECT_EQ(std::filesystem::exists(kept) && !std::filesystem::is_empty(kept), !device().info().caches_builds);
  const LoadedModel again(path);
  ExpectItRuns(again);
}

TEST_F(OpenClBackendTest, SaysWhatTheDeviceLacks) {
  EXPECT_THAT(ErrorOf(Write([](package::PackageProgram& p) { p.units[0].lanes = 1u << 30; }), HONE_INCOMPATIBLE),
              HasSubstr("the code needs 1073741824 lanes in a group, the OpenCL device '" + device().info().name));
  EXPECT_THAT(ErrorOf(Write([](package::PackageProgram& p) { p.units[0].shared_bytes = uint64_t{1} << 40; }),
                      HONE_INCOMPATIBLE),
              HasSubstr("bytes of shared memory"));
  EXPECT_THAT(
      ErrorOf(Write([](package::PackageProgram& p) { p.units[0].device = "no-such-device"; }), HONE_INCOMPATIBLE),
      HasSubstr("no OpenCL device 'no-such-device'"));
  EXPECT_THAT(
      ErrorOf(Write([](package::PackageProgram& p) { p.units[0].code = "kernel void f( {"; }), HONE_INCOMPATIBLE),
      HasSubstr("CL_BUILD_PROGRAM_FAILURE"));
  EXPECT_THAT(
      ErrorOf(Write([](package::PackageProgram& p) { p.kernels[0].main[0].function = "g"; }), HONE_INCOMPATIBLE),
      HasSubstr("no kernel 'g'"));
}

// A user who can write to the folder of compiled code can run code as its owner, so the folder must be private.
TEST(CacheFolder, IsPrivateOrEmpty) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const EnvironmentVariable cache("XDG_CACHE_HOME", folder / "cache");
  const std::filesystem::path kept = folder / "cache/hone";
  ASSERT_EQ(runtime::CacheFolder(), kept);
  struct stat status;
  ASSERT_EQ(stat(kept.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);

  std::filesystem::permissions(kept, std::filesystem::perms::all);
  EXPECT_EQ(runtime::CacheFolder(), "");
  std::filesystem::remove(kept);
  std::filesystem::create_directory_symlink(folder.path(), kept);
  EXPECT_EQ(runtime::CacheFolder(), "") << "a link leads where others may write";
}

}  // namespace
}  // namespace hone::tests
