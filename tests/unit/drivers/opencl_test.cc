// SPDX-License-Identifier: Apache-2.0
#include "drivers/opencl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"
#include "drivers/lane_roofline.h"
#include "tests/unit/drivers/opencl_device.h"

namespace hone::drivers::opencl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using OpenCl = hone::tests::OpenClTest;
namespace fs = std::filesystem;

constexpr char kSource[] = R"(
__kernel void twice(__global int* x) { x[get_global_id(0)] *= 2; }
__kernel void turn(__global const int* x, __global int* y) {
  __local int row[4];
  row[get_local_id(0)] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = row[3 - get_local_id(0)];
}
)";

std::vector<int> Ints(const Device& device, const Buffer& buffer) {
  std::vector<int> values(buffer.bytes() / sizeof(int));
  const Error read = device.Read(buffer, 0, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(read.ok()) << read.text;
  return values;
}

Buffer BufferOf(const Device& device, const std::vector<int>& values) {
  Buffer buffer;
  Error made = device.Allocate(values.size() * sizeof(int), &buffer);
  if (made.ok()) made = device.Write(buffer, 0, std::as_bytes(std::span(values)));
  EXPECT_TRUE(made.ok()) << made.text;
  return buffer;
}

Kernel KernelOf(const Device& device, const std::string& name, const std::vector<Buffer>& args,
                const BuildOptions& options = {}) {
  Program program;
  Kernel kernel;
  Error made = device.Build(kSource, options, &program);
  if (made.ok()) made = program.Find(name, &kernel);
  for (size_t i = 0; i < args.size() && made.ok(); ++i) made = kernel.SetArg(static_cast<int>(i), args[i]);
  EXPECT_TRUE(made.ok()) << made.text;
  return kernel;
}

TEST(OpenClLibrary, SaysWhatIsMissing) {
  Library library;
  const Error absent = Library::Load(&library, "libNoSuchOpenCL.so.1");
  EXPECT_EQ(absent.kind, ErrorKind::kAbsent);
  EXPECT_THAT(absent.text, AllOf(HasSubstr("libNoSuchOpenCL.so.1"), HasSubstr("install an OpenCL loader")));
  const Error other = Library::Load(&library, "libc.so.6");
  EXPECT_EQ(other.kind, ErrorKind::kAbsent);
  EXPECT_THAT(other.text, HasSubstr("libc.so.6 is not an OpenCL 1.2 library"));
}

TEST_F(OpenCl, ListsAndOpensDevices) {
  Library library;
  ASSERT_TRUE(Library::Load(&library).ok());
  std::vector<DeviceInfo> devices;
  ASSERT_TRUE(library.ListDevices(&devices).ok());
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].name, device().info().name);
  for (const DeviceInfo& info : devices) {
    EXPECT_FALSE(info.name.empty() || info.platform.empty() || info.driver_version.empty());
    EXPECT_GT(std::min({info.compute_units, info.group_lanes_max, info.preferred_multiple, info.local_bytes,
                        info.global_bytes, info.buffer_bytes_max}),
              0);
  }
  std::string part = devices[0].name;
  std::replace(part.begin(), part.end(), ' ', '-');
  Device opened;
  EXPECT_TRUE(library.Open(part.substr(1), &opened).ok());
  EXPECT_EQ(opened.info().name, devices[0].name);
  EXPECT_TRUE(library.Open("0", &opened).ok());
  for (const char* none : {"99", "no-such-device"}) {
    const Error error = library.Open(none, &opened);
    EXPECT_EQ(error.kind, ErrorKind::kAbsent);
    EXPECT_THAT(error.text, AllOf(HasSubstr(none), HasSubstr("0 '" + devices[0].name + "'")));
  }
}

TEST_F(OpenCl, RunsKernelsInOrder) {
  const Buffer x = BufferOf(device(), {1, 2, 3, 4, 5, 6, 7, 8}), y = BufferOf(device(), std::vector<int>(8));
  const Kernel twice = KernelOf(device(), "twice", {x}), turn = KernelOf(device(), "turn", {x, y});
  const Launch launches[] = {{&twice, 2, 4}, {&turn, 2, 4}};
  const Error ran = device().Run(launches, hone::tests::Soon());
  ASSERT_TRUE(ran.ok()) << ran.text;
  EXPECT_THAT(Ints(device(), y), ElementsAre(8, 6, 4, 2, 16, 14, 12, 10));
}

TEST_F(OpenCl, RunsOneLaunchAfterTheOther) {
  const Buffer x = BufferOf(device(), {1, 2, 3, 4}), y = BufferOf(device(), std::vector<int>(4));
  const Kernel twice = KernelOf(device(), "twice", {x}), turn = KernelOf(device(), "turn", {x, y});
  const Launch launches[] = {{&twice, 1, 4}, {&turn, 1, 4}, {&twice, 1, 4}};
  const Error ran = device().RunEach(launches, std::chrono::hours(1));
  ASSERT_TRUE(ran.ok()) << ran.text;
  EXPECT_THAT(Ints(device(), x), ElementsAre(4, 8, 12, 16));
  EXPECT_THAT(Ints(device(), y), ElementsAre(8, 6, 4, 2));
}

TEST_F(OpenCl, HandlesMayGoInAnyOrder) {
  auto buffer = std::make_unique<Buffer>(BufferOf(device(), {1, 2, 3, 4}));
  const Buffer result = *buffer;
  const Kernel kernel = KernelOf(device(), "twice", {*buffer});  // its program has gone
  buffer.reset();
  const Launch launch{&kernel, 1, 4};
  ASSERT_TRUE(device().Run(std::span(&launch, 1), hone::tests::Soon()).ok());
  EXPECT_THAT(Ints(device(), result), ElementsAre(2, 4, 6, 8));
}

TEST_F(OpenCl, FillsAndCopiesParts) {
  const Buffer x = BufferOf(device(), {1, 2, 3, 4});
  ASSERT_TRUE(device().Fill(x, 4, 8, std::byte{0xff}).ok());
  const int five = 5;
  ASSERT_TRUE(device().Write(x, 12, std::as_bytes(std::span(&five, 1))).ok());
  EXPECT_THAT(Ints(device(), x), ElementsAre(1, -1, -1, 5));
  EXPECT_EQ(device().Write(x, 16, std::as_bytes(std::span(&five, 1))).kind, ErrorKind::kProgram);
  Buffer empty;
  EXPECT_TRUE(device().Allocate(0, &empty).ok());
}

TEST_F(OpenCl, WorkIsHandedOverInOrderAndDoneAtFinish) {
  const std::vector<int> given = {1, 2, 3, 4};
  std::vector<int> result(4);
  Buffer x, y;
  ASSERT_TRUE(device().Allocate(16, &x).ok() && device().Allocate(16, &y).ok());
  const Kernel twice = KernelOf(device(), "twice", {x});
  ASSERT_TRUE(device().EnqueueWrite(x, std::as_bytes(std::span(given))).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(device().EnqueueLaunch({&twice, 1, 4}).ok());
  ASSERT_TRUE(device().EnqueueCopy(x, y, 16).ok());
  ASSERT_TRUE(device().EnqueueRead(y, std::as_writable_bytes(std::span(result))).ok());
  ASSERT_TRUE(device().Finish().ok());
  EXPECT_THAT(result, ElementsAre(8, 16, 24, 32));
  EXPECT_EQ(device().EnqueueCopy(x, y, 17).kind, ErrorKind::kProgram);
}

TEST_F(OpenCl, SlicesShareTheMemoryOfTheWhole) {
  const size_t at = static_cast<size_t>(device().info().slice_alignment);
  ASSERT_GE(at, sizeof(int));
  std::vector<int> zeros(2 * at / sizeof(int));
  auto whole = std::make_unique<Buffer>(BufferOf(device(), zeros));
  Buffer slice, other;
  const Error made = device().Slice(*whole, at, 8, &slice);
  ASSERT_TRUE(made.ok()) << made.text;
  const int values[] = {7, 8};
  ASSERT_TRUE(device().Write(slice, 0, std::as_bytes(std::span(values))).ok());
  EXPECT_EQ(Ints(device(), *whole)[at / sizeof(int) + 1], 8);
  EXPECT_THAT(device().Slice(*whole, at + 4, 4, &other).text, HasSubstr("needs a multiple of " + std::to_string(at)));
  EXPECT_FALSE(device().Slice(*whole, at, at + 1, &other).ok()) << "it ends behind the whole";
  whole.reset();
  EXPECT_THAT(Ints(device(), slice), ElementsAre(7, 8));
}

TEST_F(OpenCl, TimesEveryRepeat) {
  const Buffer x = BufferOf(device(), std::vector<int>(256, 1));
  const Kernel twice = KernelOf(device(), "twice", {x});
  const Launch launches[] = {{&twice, 4, 64}, {&twice, 4, 64}};
  Timing timing;
  const Error ran = device().Time(launches, 3, hone::tests::Soon(), &timing);
  ASSERT_TRUE(ran.ok()) << ran.text;
  EXPECT_THAT(timing.device_seconds, ElementsAre(Gt(0), Gt(0), Gt(0)));
  EXPECT_GT(timing.wall_seconds, 0);
  EXPECT_EQ(Ints(device(), x)[0], 64);
}

TEST_F(OpenCl, ADeadlineThatPassesIsATimeout) {
  const Buffer x = BufferOf(device(), {1});
  Program program;
  const char* slow =
      "__kernel void slow(__global volatile int* x) { for (int i = 0; i < 200000000; ++i) x[0] = x[0] + 1; }";
  ASSERT_TRUE(device().Build(slow, {}, &program).ok());
  Kernel kernel;
  ASSERT_TRUE(program.Find("slow", &kernel).ok());
  ASSERT_TRUE(kernel.SetArg(0, x).ok());
  const Launch launch{&kernel, 1, 1};
  EXPECT_EQ(device().Run(std::span(&launch, 1), std::chrono::steady_clock::now()).kind, ErrorKind::kTimeout);
  EXPECT_EQ(Ints(device(), x)[0], 200000001);  // waits for it
  EXPECT_EQ(device().RunEach(std::span(&launch, 1), std::chrono::seconds(0)).kind, ErrorKind::kTimeout);
  EXPECT_EQ(Ints(device(), x)[0], 400000001);
}

TEST_F(OpenCl, ABuildErrorComesWithTheLog) {
  Program program;
  const Error error = device().Build("__kernel void f(__global int* x) { x[0] = unheard_of; }", {}, &program);
  EXPECT_EQ(error.kind, ErrorKind::kProgram);
  EXPECT_THAT(error.text, AllOf(HasSubstr("CL_BUILD_PROGRAM_FAILURE"), HasSubstr("unheard_of")));
}

TEST_F(OpenCl, WhatTheDeviceRefusesNamesTheKernel) {
  Program program;
  ASSERT_TRUE(device().Build(kSource, {}, &program).ok());
  Kernel kernel;
  EXPECT_THAT(program.Find("thrice", &kernel).text, HasSubstr("no kernel 'thrice'"));
  ASSERT_TRUE(program.Find("turn", &kernel).ok());
  EXPECT_GT(kernel.group_lanes_max(), 0);
  const Buffer x = BufferOf(device(), std::vector<int>(8));
  EXPECT_THAT(kernel.SetArg(2, x).text, HasSubstr("argument 2 of kernel 'turn'"));
  ASSERT_TRUE(kernel.SetArg(0, x).ok() && kernel.SetArg(1, x).ok());
  const Launch launch{&kernel, 1, device().info().group_lanes_max * 2};
  const Error refused = device().Run(std::span(&launch, 1), hone::tests::Soon());
  EXPECT_EQ(refused.kind, ErrorKind::kProgram);
  EXPECT_THAT(refused.text, AllOf(HasSubstr("'turn'"), HasSubstr("1 groups of")));
}

TEST_F(OpenCl, RooflinesAreWhatTheDeviceReaches) {
  LaneRoofline roofline;
  const Error measured = MeasureRoofline<OpenClDriver>(device(), {}, &roofline);
  ASSERT_TRUE(measured.ok()) << measured.text;
  // Wide enough for any device and any load, and narrow enough for a wrong unit or a loop that was dropped.
  EXPECT_THAT(roofline.flops_per_second, AllOf(Gt(1e8), Lt(1e16)));
  EXPECT_THAT(roofline.memory_bytes_per_second, AllOf(Gt(1e7), Lt(1e14)));
  EXPECT_EQ(roofline.cache_bytes > 0, roofline.cache_bytes_per_second > 0);
}

TEST_F(OpenCl, BinariesAreKeptAndFoundAgain) {
  if (device().info().caches_builds) GTEST_SKIP() << "the driver keeps them itself: see kept_builds_test.cc";
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const BuildOptions options{.cache_folder = folder / "binaries"};
  Program program;
  const auto from_cache = [&](const BuildOptions& with) {
    const Error built = device().Build(kSource, with, &program);
    EXPECT_TRUE(built.ok()) << built.text;
    return program.from_cache();
  };
  EXPECT_FALSE(from_cache({}));
  EXPECT_FALSE(from_cache(options));
  EXPECT_TRUE(from_cache(options));
  const Buffer x = BufferOf(device(), {1, 2, 3, 4});
  const Kernel twice = KernelOf(device(), "twice", {x}, options);
  const Launch launch{&twice, 1, 4};
  ASSERT_TRUE(device().Run(std::span(&launch, 1), hone::tests::Soon()).ok());
  EXPECT_THAT(Ints(device(), x), ElementsAre(2, 4, 6, 8));

  BuildOptions other = options;
  other.extra_options = "-DOTHER=1";
  EXPECT_FALSE(from_cache(other));
  for (const auto& entry : fs::directory_iterator(options.cache_folder)) {
    fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  }
  EXPECT_FALSE(from_cache(options));
  EXPECT_TRUE(from_cache(options));
}

}  // namespace
}  // namespace hone::drivers::opencl
