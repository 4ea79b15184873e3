// SPDX-License-Identifier: Apache-2.0
// Tests of the OpenCL driver on the fake library of fake_opencl.cc: faults of kernels, exact times, and the kernels of
// the roofline measurement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "drivers/lane_roofline.h"
#include "drivers/opencl.h"

namespace hone::drivers::opencl {
namespace {

Deadline InAMinute() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

struct Opened {
  // Finds a kernel and sets its arguments; false if that fails.
  bool Find(const std::string& name, Kernel* kernel) {
    if (!program.Find(name, kernel).ok()) return false;
    for (int i = 0; i < 3; ++i) {
      if (!kernel->SetArg(i, buffer).ok()) return false;
    }
    return true;
  }
  Library library;
  Device device;
  Program program;
  Buffer buffer;
  const bool ready = Library::Load(&library, HONE_FAKE_OPENCL).ok() && library.Open("", &device).ok() &&
                     device.Build("kernels", {}, &program).ok() && device.Allocate(4000, &buffer).ok();
};

// Runs the kernels and exits with 0 if all calls on the device then have the expected error. Each case runs in a child
// process, because a fault affects the whole process.
[[noreturn]] void RunAndExit(const std::vector<std::string>& names, ErrorKind expected) {
  Opened opened;
  if (!opened.ready) _exit(2);
  std::vector<Kernel> kernels(names.size());
  std::vector<Launch> launches;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!opened.Find(names[i], &kernels[i])) _exit(3);
    launches.push_back({&kernels[i], 8, 128});
  }
  const Device& device = opened.device;
  const Buffer& buffer = opened.buffer;
  std::vector<std::byte> bytes(4000);
  const bool as_expected = device.Run(launches, InAMinute()).kind == expected && device.Finish().kind == expected &&
                           device.Read(buffer, 0, bytes).kind == expected &&
                           device.Fill(buffer, 0, 4, std::byte{0}).ok() == (expected == ErrorKind::kNone);
  _exit(as_expected ? 0 : 1);
}

TEST(OpenClFaults, KernelFaultsAreNotProgramErrors) {
  EXPECT_EXIT(RunAndExit({"good"}, ErrorKind::kNone), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(RunAndExit({"fault"}, ErrorKind::kFault), ::testing::ExitedWithCode(0), "");
}

// The launch after a fault is refused with the same code as a launch that needs too many resources.
TEST(OpenClFaults, FaultMayAppearAtTheNextLaunch) {
  EXPECT_EXIT(RunAndExit({"fault", "good"}, ErrorKind::kFault), ::testing::ExitedWithCode(0), "");
}

TEST(OpenClTimes, AreExactAfterLongUptime) {
  Opened opened;
  ASSERT_TRUE(opened.ready);
  Kernel kernel;
  ASSERT_TRUE(opened.Find("tick", &kernel));
  const Launch launch{&kernel, 8, 128};
  Timing timing;
  ASSERT_TRUE(opened.device.Time({&launch, 1}, 5, InAMinute(), &timing).ok());
  ASSERT_EQ(timing.device_seconds.size(), 5U);
  EXPECT_THAT(timing.device_seconds, ::testing::Each(::testing::DoubleNear(300e-9, 1e-15)));
}

// A compiler leaves out those numbers of a vector that are not used, so all must be. The test examines the source that
// the cache has kept, because the fake cannot run the kernel.
TEST(OpenClRoofline, EveryVectorElementAffectsTheResult) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  Opened opened;
  ASSERT_TRUE(opened.ready);
  LaneRoofline roofline;
  EXPECT_EQ(MeasureRoofline<OpenClDriver>(opened.device, folder.path(), &roofline).kind, ErrorKind::kProgram);
  std::ifstream file(std::filesystem::directory_iterator(folder.path())->path(), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const char* kernel : {"kernel void hone_compute", "kernel void hone_read"}) {
    const size_t begin = text.rfind(kernel);
    ASSERT_NE(begin, std::string::npos);
    const std::string body = text.substr(begin, text.find("\n}\n", begin) - begin);
    EXPECT_THAT(body, ::testing::HasSubstr("if (any(sum < 0.0f)) out[0] = 1.0f;"));
    EXPECT_THAT(body, ::testing::Not(::testing::ContainsRegex("sum\\.s[0-9a-f]")));
  }
  EXPECT_THAT(text, ::testing::HasSubstr("(float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)"))
      << "chains that begin alike are one";
}

}  // namespace
}  // namespace hone::drivers::opencl
