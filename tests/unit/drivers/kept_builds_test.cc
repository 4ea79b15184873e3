// SPDX-License-Identifier: Apache-2.0
// Tests where compiled OpenCL programs are cached, by the driver or by us, on the fake library of fake_opencl.cc.
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "drivers/opencl.h"

namespace hone::drivers::opencl {
namespace {

namespace fs = std::filesystem;

class KeptBuilds : public ::testing::Test {
 protected:
  static Device Opened(const char* name) {
    Library library;
    Device device;
    Error error = Library::Load(&library, HONE_FAKE_OPENCL);
    EXPECT_TRUE(error.ok()) << error.text;
    error = library.Open(name, &device);
    EXPECT_TRUE(error.ok()) << error.text;
    return device;
  }

  bool FromCache(const Device& device, const std::string& extra_options = "") const {
    Program program;
    const Error built =
        device.Build("kernel void f() {}", {.extra_options = extra_options, .cache_folder = cache_}, &program);
    EXPECT_TRUE(built.ok()) << built.text;
    return program.from_cache();
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const fs::path cache_ = folder_ / "cache";
};

TEST_F(KeptBuilds, BuildsAreCachedIfTheDriverDoesNot) {
  const Device device = Opened("Plain-Device");
  EXPECT_EQ(device.info().number, 0);
  EXPECT_FALSE(device.info().caches_builds);
  EXPECT_FALSE(FromCache(device));
  EXPECT_TRUE(FromCache(device));
  EXPECT_FALSE(FromCache(device, "-DOTHER=1"));
  for (const auto& entry : fs::directory_iterator(cache_)) {
    fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  }
  EXPECT_FALSE(FromCache(device));
  EXPECT_TRUE(FromCache(device));
}

TEST_F(KeptBuilds, BuildsAreNotCachedTwice) {
  const Device device = Opened("Keeping-Device");
  EXPECT_EQ(device.info().number, 1);
  EXPECT_TRUE(device.info().caches_builds);
  EXPECT_FALSE(FromCache(device));
  EXPECT_FALSE(FromCache(device));
  EXPECT_FALSE(fs::exists(cache_));
}

}  // namespace
}  // namespace hone::drivers::opencl
