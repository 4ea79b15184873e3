// SPDX-License-Identifier: Apache-2.0
// Tests of the CUDA driver on a fake library: programs, launches, graphs and faults.
#include "drivers/cuda.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "drivers/binary_cache.h"
#include "drivers/cuda_api.h"
#include "drivers/lane_roofline.h"

namespace hone::drivers::cuda {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// PTX as a package has it: one module per kernel.
std::string Module(const std::string& kernel) {
  return ".version 4.2\n.target sm_53\n.address_size 64\n.visible .entry " + kernel + "(.param .u64 x) {\n  ret;\n}\n";
}

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Library library;
    Error e = Library::Load(&library, HONE_FAKE_CUDA);
    ASSERT_TRUE(e.ok()) << e.text;
    e = library.Open("", &device_);
    ASSERT_TRUE(e.ok()) << e.text;
  }

  void TearDown() override {
    GiveBack();
    EXPECT_EQ(Call("hone_fake_cuda_alive"), 0) << "contexts, modules, events or graphs were not given back";
  }

  // y = 2 x + w, with x = 1 and w = 1.
  void Prepare() {
    const std::vector<float> ones(1000, 1);
    for (Buffer* buffer : {&x_, &w_, &y_}) {
      ASSERT_TRUE(device_.Allocate(4000, buffer).ok());
      ASSERT_TRUE(device_.Write(*buffer, 0, std::as_bytes(std::span(ones))).ok());
    }
    ASSERT_TRUE(device_.Build(Module("good") + Module("crash") + Module("hang"), {}, &program_).ok());
  }
  Launch Bind(const std::string& name) {
    EXPECT_TRUE(program_.Find(name, &kernel_).ok());
    int index = 0;
    for (const Buffer& buffer : {x_, w_, y_}) EXPECT_TRUE(kernel_.SetArg(index++, buffer).ok());
    return {&kernel_, 8, 128};
  }

  void GiveBack() {
    for (Buffer* buffer : {&x_, &w_, &y_}) *buffer = {};
    kernel_ = {};
    program_ = {};
    device_ = {};
  }

  // A function of the driver, as other libraries of the process call it.
  template <typename... P>
  static int Call(const char* name, P... arguments) {
    void* const driver = dlopen(HONE_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
    const int code = reinterpret_cast<int (*)(P...)>(dlsym(driver, name))(arguments...);
    dlclose(driver);
    return code;
  }
  static void* Current() {
    void* context = nullptr;
    EXPECT_EQ(Call("cuCtxGetCurrent", &context), 0);
    return context;
  }

  Device device_;
  Buffer x_, w_, y_;
  Program program_;
  Kernel kernel_;
};

TEST_F(CudaTest, SaysWhatItIs) {
  EXPECT_EQ(device_.info().name, "Fake CUDA device");
  EXPECT_EQ(device_.info().architecture, "sm_87");
  EXPECT_EQ(device_.info().driver_version, "12.4");
  EXPECT_EQ(device_.info().local_bytes, 163 << 10);
}

TEST_F(CudaTest, SeveralModulesBecomeOne) {
  Prepare();
  const Launch launch = Bind("good");
  Timing timing;
  ASSERT_TRUE(device_.Time({&launch, 1}, 3, Deadline::max(), &timing).ok());
  EXPECT_EQ(timing.device_seconds.size(), 3U);
  std::vector<float> y(1000);
  ASSERT_TRUE(device_.Read(y_, 0, std::as_writable_bytes(std::span(y))).ok());
  EXPECT_THAT(y, Each(3.0F));
}

// A launch overlaps the one before it only if its kernel waits for that launch in its code. All other work runs in
// order.
TEST_F(CudaTest, LaunchesThatWaitForThePreviousOneOverlap) {
  Prepare();
  const auto overlapping = [] { return Call("hone_fake_cuda_overlapping"); };
  const int before = overlapping();
  Timing timing;
  Launch launch = Bind("good");
  ASSERT_TRUE(device_.Time(std::vector<Launch>(3, launch), 2, Deadline::max(), &timing).ok());
  EXPECT_EQ(overlapping(), before);
  std::string waits = Module("good");
  waits.insert(waits.find("ret;"), "griddepcontrol.wait;\n  ");
  ASSERT_TRUE(device_.Build(Module("crash") + waits + Module("hang"), {}, &program_).ok());
  launch = Bind("good");
  ASSERT_TRUE(device_.Time(std::vector<Launch>(3, launch), 2, Deadline::max(), &timing).ok());
  EXPECT_EQ(overlapping(), before + 4) << "all but the first of each repeat";
  ASSERT_TRUE(device_.EnqueueLaunch(launch).ok());
  ASSERT_TRUE(device_.EnqueueCopy(x_, w_, 4).ok());
  ASSERT_TRUE(device_.EnqueueLaunch(launch).ok());
  EXPECT_EQ(overlapping(), before + 4);
}

TEST_F(CudaTest, RecordedWorkRunsWhenTheGraphIsLaunched) {
  Prepare();
  PinnedMemory in, out;
  ASSERT_TRUE(device_.AllocatePinned(4000, &in).ok());
  ASSERT_TRUE(device_.AllocatePinned(4000, &out).ok());
  const auto floats = [](const PinnedMemory& memory) {
    return std::span(reinterpret_cast<float*>(memory.bytes().data()), 1000);
  };
  std::ranges::fill(floats(out), 0);
  Graph graph;
  ASSERT_TRUE(device_.BeginGraph().ok());
  ASSERT_TRUE(device_.EnqueueWrite(x_, in.bytes()).ok());
  ASSERT_TRUE(device_.EnqueueLaunch(Bind("good")).ok());
  ASSERT_TRUE(device_.EnqueueRead(y_, out.bytes()).ok());
  ASSERT_TRUE(device_.EndGraph(&graph).ok());
  EXPECT_THAT(floats(out), Each(0.0F));  // nothing is done yet
  for (const float x : {4.0F, 5.0F}) {
    std::ranges::fill(floats(in), x);
    ASSERT_TRUE(device_.EnqueueGraph(graph).ok());
    ASSERT_TRUE(device_.Finish().ok());
    EXPECT_THAT(floats(out), Each(2 * x + 1));
  }
}

// A call that may wait for the device invalidates a recording. The fake does as the real driver does.
TEST_F(CudaTest, BlockingCallsAreNotRecorded) {
  Graph graph;
  EXPECT_FALSE(device_.EndGraph(&graph).ok()) << "nothing was begun";
  Prepare();
  const Launch launch = Bind("good");
  Buffer buffer;
  for (const auto& waits : std::vector<std::function<Error()>>{
           [&] { return device_.Finish(); }, [&] { return device_.Allocate(4, &buffer); },
           [&] { return device_.Build(Module("good"), {}, &program_); },
           [&] { return device_.Run({&launch, 1}, Deadline::max()); }}) {
    ASSERT_TRUE(device_.BeginGraph().ok());
    ASSERT_TRUE(device_.EnqueueLaunch(launch).ok());
    EXPECT_THAT(waits().text, HasSubstr("(900)"));
    EXPECT_THAT(device_.EndGraph(&graph).text, HasSubstr("(901)"));
    EXPECT_FALSE(graph.defined());
    EXPECT_TRUE(device_.Run({&launch, 1}, Deadline::max()).ok());
  }
}

// Another library, such as PyTorch, may record a graph in another thread at the same time.
TEST_F(CudaTest, OtherThreadsMayCaptureAtTheSameTime) {
  unsigned long long place = 0;
  Call("hone_fake_cuda_others_record", 1);
  Prepare();
  const Launch launch = Bind("good");
  EXPECT_TRUE(device_.Run({&launch, 1}, Deadline::max()).ok());
  GiveBack();
  void* context = nullptr;
  ASSERT_EQ(Call("cuDevicePrimaryCtxRetain", &context, 0), 0);
  ASSERT_EQ(Call("cuCtxPushCurrent_v2", context), 0);
  EXPECT_EQ(Call("cuMemAlloc_v2", &place, size_t{4}), 900) << "the thread's own mode is what it was";
  Call("hone_fake_cuda_others_record", 0);
  EXPECT_EQ(Call("cuCtxPopCurrent_v2", &context), 0);
  EXPECT_EQ(Call("cuDevicePrimaryCtxRelease_v2", 0), 0);
}

// The real driver refuses to allocate in a thread without a current context, and so does the fake.
TEST_F(CudaTest, WithoutAContextNothingIsAllocated) {
  void* memory = nullptr;
  EXPECT_EQ(Call("cuMemHostAlloc", &memory, size_t{4096}, 0U), 201);
  EXPECT_EQ(memory, nullptr);
}

// If a buffer were not set, the driver would read an address beyond the end of the argument list.
TEST_F(CudaTest, AKernelIsLaunchedWithAllItsBuffers) {
  Program program;
  Kernel kernel;
  const std::string two =
      ".version 4.2\n.target sm_53\n.address_size 64\n"
      ".visible .entry hone_compute(\n  .param .u64 a,\n  .param .u64 b\n)\n{\n  ret;\n}\n";
  ASSERT_TRUE(device_.Build(two, {}, &program).ok());
  ASSERT_TRUE(program.Find("hone_compute", &kernel).ok());
  Buffer buffer;
  ASSERT_TRUE(device_.Allocate(4000, &buffer).ok());
  ASSERT_TRUE(kernel.SetArg(0, buffer).ok());
  const Launch launch{&kernel, 1, 32};
  const Error refused = device_.Run({&launch, 1}, Deadline::max());
  EXPECT_EQ(refused.kind, ErrorKind::kProgram);
  EXPECT_EQ(refused.text, "buffer 1 of kernel 'hone_compute' is not set");
  ASSERT_TRUE(kernel.SetArg(1, device_.Adopt(nullptr, 0)).ok());  // an empty tensor of the caller
  EXPECT_TRUE(device_.Run({&launch, 1}, Deadline::max()).ok());
}

TEST_F(CudaTest, RooflinesAreWhatTheDeviceReaches) {
  LaneRoofline roofline;
  const Error measured = MeasureRoofline<CudaDriver>(device_, {}, &roofline);
  ASSERT_TRUE(measured.ok()) << measured.text;
  EXPECT_GT(roofline.flops_per_second, 0);
  EXPECT_GT(roofline.memory_bytes_per_second, 0);
  EXPECT_EQ(roofline.cache_bytes, device_.info().cache_bytes / 2);
  EXPECT_GT(roofline.cache_bytes_per_second, 0);
}

// A long read is done in parts, of which the last is shorter.
TEST_F(CudaTest, ALongReadIsWhole) {
  constexpr size_t kBytes = (7 << 20) + 12;
  std::vector<uint32_t> written(kBytes / 4), read(kBytes / 4, 0);
  std::iota(written.begin(), written.end(), 1);
  Buffer buffer;
  ASSERT_TRUE(device_.Allocate(kBytes, &buffer).ok());
  ASSERT_TRUE(device_.Write(buffer, 0, std::as_bytes(std::span(written))).ok());
  ASSERT_TRUE(device_.Read(buffer, 0, std::as_writable_bytes(std::span(read))).ok());
  EXPECT_EQ(read, written);
  read.resize(read.size() - 1);
  ASSERT_TRUE(device_.Read(buffer, 4, std::as_writable_bytes(std::span(read))).ok());
  EXPECT_TRUE(std::equal(read.begin(), read.end(), written.begin() + 1));
}

// The CPUs of boards before Xavier (sm_72) do not cache pinned memory, so reads avoid it there.
TEST_F(CudaTest, ReadsGoThroughPinnedMemoryWhereThatIsFast) {
  std::vector<std::byte> bytes(1 << 20);
  const auto pinned = [&](const char* architecture) {
    setenv("HONE_FAKE_CUDA_ARCH", architecture, 1);
    setenv("HONE_FAKE_CUDA_INTEGRATED", "1", 1);
    Library library;
    Device device;
    Buffer buffer;
    EXPECT_TRUE(Library::Load(&library, HONE_FAKE_CUDA).ok() && library.Open("", &device).ok());
    unsetenv("HONE_FAKE_CUDA_ARCH");
    unsetenv("HONE_FAKE_CUDA_INTEGRATED");
    const int before = Call("hone_fake_cuda_pinned");
    EXPECT_TRUE(device.Allocate(bytes.size(), &buffer).ok() && device.Read(buffer, 0, bytes).ok());
    return Call("hone_fake_cuda_pinned") - before;
  };
  EXPECT_EQ(pinned("53"), 0);
  EXPECT_EQ(pinned("72"), 1);
}

TEST_F(CudaTest, AGroupHasTheSharedMemoryThatItsKernelAsksFor) {
  Prepare();
  const Launch launch = Bind("good");
  ASSERT_TRUE(kernel_.SetShared(100 << 10).ok());  // the fake refuses a launch with more than this
  EXPECT_TRUE(device_.Run({&launch, 1}, Deadline::max()).ok());
  const Error e = kernel_.SetShared(200 << 10);
  EXPECT_EQ(e.kind, ErrorKind::kProgram);
  EXPECT_THAT(e.text, HasSubstr("204800 bytes of shared memory for kernel 'good'"));
  EXPECT_EQ(kernel_.SetShared(200 << 10).kind, ErrorKind::kProgram) << "again";
  for (const int64_t bytes : {int64_t{1} << 32, int64_t{-1}}) {
    EXPECT_EQ(kernel_.SetShared(bytes).kind, ErrorKind::kProgram) << bytes;
  }
}

// A launch that this device does not support is an error of the kernel (kProgram) and not of the device (kDevice).
TEST_F(CudaTest, UnsupportedFeatureIsAProgramError) {
  std::shared_ptr<const Api> api;
  ASSERT_TRUE(LoadApi(HONE_FAKE_CUDA, &api).ok());
  for (const int code : {701, 801, 912}) EXPECT_EQ(Check(*api, code, "a launch").kind, ErrorKind::kProgram) << code;
  EXPECT_EQ(Check(*api, 999, "a launch").kind, ErrorKind::kDevice);
}

TEST_F(CudaTest, RejectedLaunchIsAProgramError) {
  Prepare();
  Launch launch = Bind("good");
  launch.groups = 0;
  EXPECT_EQ(device_.Run({&launch, 1}, Deadline::max()).kind, ErrorKind::kProgram);
  launch = {&kernel_, 1, 0};
  EXPECT_EQ(device_.Run({&launch, 1}, Deadline::max()).kind, ErrorKind::kProgram);
}

// Another library of the process has its own context in this thread. It stays the current one, even if our calls fail.
TEST_F(CudaTest, TheCallersContextStays) {
  EXPECT_EQ(Current(), nullptr) << "after SetUp";
  int others = 0;
  ASSERT_EQ(Call("cuCtxPushCurrent_v2", static_cast<void*>(&others)), 0);
  Prepare();
  const Launch launch = Bind("good");
  Timing timing;
  ASSERT_TRUE(device_.Time({&launch, 1}, 3, Deadline::max(), &timing).ok());
  EXPECT_EQ(Current(), &others) << "after all that succeeds";
  Buffer large;
  EXPECT_EQ(device_.Allocate(size_t{2} << 30, &large).kind, ErrorKind::kMemory);
  EXPECT_FALSE(device_.Build("no PTX", {}, &program_).ok());
  EXPECT_EQ(Current(), &others) << "after failures";
  GiveBack();
  EXPECT_EQ(Current(), &others) << "when all is given back";
  void* popped = nullptr;
  EXPECT_EQ(Call("cuCtxPopCurrent_v2", &popped), 0);
}

TEST_F(CudaTest, RefusesWhatIsNoProgram) {
  Program program;
  const Error e = device_.Build("kernel void f() {}", {}, &program);
  EXPECT_EQ(e.kind, ErrorKind::kProgram);
  EXPECT_THAT(e.text, HasSubstr("CUDA_ERROR_INVALID_PTX (218)"));
  Prepare();
  EXPECT_EQ(program_.Find("absent", &kernel_).kind, ErrorKind::kProgram);
}

// PTX text followed by modules of machine code, in the format of base/code_kind.h.
std::string WithMachineCode(std::string code, const std::vector<std::string>& modules) {
  code += '\0';
  for (const std::string& module : modules) {
    const uint64_t length = module.size();
    code.append(reinterpret_cast<const char*>(&length), sizeof length);
    code += module;
  }
  return code;
}

TEST_F(CudaTest, TakesMachineCodeAndElseTheText) {
  Program program;
  Kernel kernel;
  const std::string good = "machine code for sm_87 .entry good(", crash = "machine code for sm_87 .entry crash(";
  // The text is not valid PTX, which shows that it is not compiled.
  ASSERT_TRUE(device_.Build(WithMachineCode("no PTX", {good, crash}), {}, &program).ok());
  EXPECT_TRUE(program.Find("good", &kernel).ok());
  EXPECT_TRUE(program.Find("crash", &kernel).ok());
  EXPECT_EQ(program.Find("hang", &kernel).kind, ErrorKind::kProgram);

  const std::string text = Module("hang"), other = "machine code for sm_90 .entry good(";
  std::string truncated = WithMachineCode(text, {good});
  truncated.pop_back();
  for (const std::string& code : {WithMachineCode(text, {good, other}), truncated, text + '\0' + "\1\2"}) {
    ASSERT_TRUE(device_.Build(code, {}, &program).ok());
    EXPECT_TRUE(program.Find("hang", &kernel).ok());
    EXPECT_FALSE(program.Find("good", &kernel).ok());
  }
  EXPECT_THAT(device_.Build(WithMachineCode("no PTX", {other}), {}, &program).text, HasSubstr("INVALID_PTX"));
}

// A driver that was updated under the same version may reject binaries that it compiled before.
TEST_F(CudaTest, RejectedCachedBinaryIsCompiledAgain) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const BuildOptions options{.extra_options = {}, .cache_folder = folder.path()};
  const auto from_cache = [&] {
    Program program;
    Kernel kernel;
    const Error built = device_.Build(Module("good"), options, &program);
    EXPECT_TRUE(built.ok() && program.Find("good", &kernel).ok()) << built.text;
    return program.from_cache();
  };
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
  // The entry says what its key is, after how long that is (binary_cache.cc).
  std::ifstream file(std::filesystem::directory_iterator(folder.path())->path(), std::ios::binary);
  const std::string entry{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  uint64_t key_bytes = 0;
  entry.copy(reinterpret_cast<char*>(&key_bytes), sizeof key_bytes, 8);
  const std::string key = entry.substr(32, key_bytes);
  ASSERT_THAT(key, HasSubstr("Fake CUDA device"));
  BinaryCache(folder.path()).Store(key, "machine code for sm_90 .entry good(");
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
}

TEST_F(CudaTest, TooNewPtxErrorSaysWhatToDo) {
  std::string newer = Module("good");
  newer.replace(newer.find("4.2"), 3, "8.0");
  Program program;
  EXPECT_TRUE(device_.Build(newer, {}, &program).ok());
  setenv("HONE_FAKE_CUDA_VERSION", "11080", 1);
  const Error e = device_.Build(newer, {}, &program);
  unsetenv("HONE_FAKE_CUDA_VERSION");
  EXPECT_EQ(e.kind, ErrorKind::kProgram);
  EXPECT_THAT(e.text, HasSubstr("CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222); install a newer driver, or compile for an "
                                "older architecture"));
}

// The driver of CUDA 10.2, for the Jetson Nano, lacks cuGraphInstantiateWithFlags and cuLaunchKernelEx, and releases
// its context by a function with another name.
TEST(OldCudaTest, RunsOnOldDriverWithoutNewFunctions) {
  Library library;
  const Error loaded = Library::Load(&library, HONE_FAKE_OLD_CUDA);
  ASSERT_TRUE(loaded.ok()) << loaded.text;
  Device device;
  ASSERT_TRUE(library.Open("", &device).ok());
  EXPECT_EQ(device.info().driver_version, "10.2");
  std::string waits = Module("good");
  waits.insert(waits.find("ret;"), "griddepcontrol.wait;\n  ");
  Program program;
  Kernel kernel;
  ASSERT_TRUE(device.Build(waits, {}, &program).ok());
  ASSERT_TRUE(program.Find("good", &kernel).ok());
  std::vector<float> values(1000, 1);
  Buffer x, y;
  for (Buffer* buffer : {&x, &y}) {
    ASSERT_TRUE(device.Allocate(4000, buffer).ok());
    ASSERT_TRUE(device.Write(*buffer, 0, std::as_bytes(std::span(values))).ok());
  }
  const Buffer* const buffers[] = {&x, &x, &y};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(kernel.SetArg(i, *buffers[i]).ok());
  const Launch launch{&kernel, 8, 128};
  ASSERT_TRUE(device.Run(std::vector<Launch>(3, launch), Deadline::max()).ok());
  ASSERT_TRUE(device.Read(y, 0, std::as_writable_bytes(std::span(values))).ok());
  EXPECT_THAT(values, Each(3.0F));
  EXPECT_EQ(device.BeginGraph().kind, ErrorKind::kAbsent);
}

TEST_F(CudaTest, ChecksRangesItself) {
  Prepare();
  Buffer slice;
  EXPECT_THAT(device_.Slice(x_, 100, 4, &slice).text, HasSubstr("needs a multiple of 256"));
  EXPECT_EQ(device_.Slice(x_, 3840, 200, &slice).kind, ErrorKind::kProgram);
  EXPECT_EQ(device_.Fill(x_, 3000, 1001, std::byte{0}).kind, ErrorKind::kProgram);
}

TEST_F(CudaTest, SaysWhenThereIsNoMemory) {
  setenv("HONE_FAKE_CUDA_MEMORY", "0", 1);
  Buffer empty;
  const Error e = device_.Allocate(0, &empty);
  unsetenv("HONE_FAKE_CUDA_MEMORY");
  EXPECT_EQ(e.kind, ErrorKind::kMemory);
  EXPECT_THAT(e.text, HasSubstr("cannot allocate 1 bytes on 'Fake CUDA device'"));
}

TEST_F(CudaTest, SaysWhenTheLibraryIsAbsent) {
  Library library;
  const Error e = Library::Load(&library, "libcuda-that-is-not-there.so");
  EXPECT_EQ(e.kind, ErrorKind::kAbsent);
  EXPECT_THAT(e.text, HasSubstr("install NVIDIA's driver"));
}

// PTX of a kernel: each lane of a group of 4 adds 1 to its element of x. `more`: instructions before the load.
std::string AddOne(const std::string& more) {
  return ".version 4.2\n.target sm_53\n.address_size 64\n.visible .entry add_one(.param .u64 x)\n.reqntid 4\n{\n"
         ".reg .b32 %r<4>;\n.reg .f32 %f<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [x];\nmov.u32 %r1, %tid.x;\n"
         "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd1, %rd1, %rd2;\n" +
         more + "ld.global.f32 %f1, [%rd1];\nadd.f32 %f1, %f1, 0f3F800000;\nst.global.f32 [%rd1], %f1;\nret;\n}\n";
}

TEST_F(CudaTest, UnknownFunctionOfTheFakeRunsAsPtx) {
  Prepare();
  ASSERT_TRUE(device_.Build(AddOne(""), {}, &program_).ok());
  ASSERT_TRUE(program_.Find("add_one", &kernel_).ok());
  ASSERT_TRUE(kernel_.SetArg(0, x_).ok());
  const Launch launch{&kernel_, 1, 4};
  ASSERT_TRUE(device_.Run({&launch, 1}, Deadline::max()).ok());
  std::vector<float> x(5);
  ASSERT_TRUE(device_.Read(x_, 0, std::as_writable_bytes(std::span(x))).ok());
  EXPECT_THAT(x, ::testing::ElementsAre(2, 2, 2, 2, 1));
  EXPECT_EQ(kernel_.group_lanes_max(), 4);
  const Launch other_lanes{&kernel_, 1, 2};
  EXPECT_EQ(device_.Run({&other_lanes, 1}, Deadline::max()).kind, ErrorKind::kProgram) << "it requires 4";
  EXPECT_THAT(device_.Build(AddOne("frob;\n"), {}, &program_).text, HasSubstr("INVALID_PTX"));
}

// Each case runs in a child process, because the device cannot be used afterwards.
TEST_F(CudaTest, AFaultEndsTheContext) {
  const auto crash = [&] {
    Prepare();
    const Launch launch = Bind("crash");
    Buffer buffer;
    PinnedMemory pinned;
    const Error errors[] = {device_.Run({&launch, 1}, Deadline::max()), device_.Finish(), device_.Allocate(4, &buffer),
                            device_.AllocatePinned(4, &pinned)};
    exit(std::ranges::all_of(errors, [](const Error& e) { return e.kind == ErrorKind::kFault; }) ? 0 : 1);
  };
  EXPECT_EXIT(crash(), ::testing::ExitedWithCode(0), "");
}

TEST_F(CudaTest, AFaultOfPtxEndsTheContextAndSaysWhy) {
  const auto run = [&](const std::string& more, const char* name) {
    Prepare();
    if (!device_.Build(AddOne(more), {}, &program_).ok() || !program_.Find("add_one", &kernel_).ok()) exit(2);
    if (!kernel_.SetArg(0, x_).ok()) exit(2);
    const Launch launch{&kernel_, 1, 4};
    const Error e = device_.Run({&launch, 1}, Deadline::max());
    const bool told = e.kind == ErrorKind::kFault && e.text.find(name) != std::string::npos;
    exit(told && device_.Finish().kind == ErrorKind::kFault ? 0 : 1);
  };
  EXPECT_EXIT(run("add.s64 %rd1, %rd1, 3996;\n", "ILLEGAL_ADDRESS"), ::testing::ExitedWithCode(0),
              "line 15: ld.global.f32 %f1, .%rd1.: group 0, lane 1 reads 4 bytes");
  EXPECT_EXIT(run("add.s64 %rd1, %rd1, 2;\n", "an error"), ::testing::ExitedWithCode(0), "which is not aligned");
}

// Another library may destroy the context by cudaDeviceReset.
TEST_F(CudaTest, DestroyedContextIsAnError) {
  EXPECT_EXIT(
      {
        Prepare();
        Call("cuDevicePrimaryCtxReset_v2", 0);
        const Error e = device_.Finish();
        GiveBack();
        const bool told = e.kind == ErrorKind::kDevice && e.text.find("CONTEXT_IS_DESTROYED") != std::string::npos;
        _exit(told && Current() == nullptr ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(CudaTest, AHangIsATimeout) {
  EXPECT_EXIT(
      {
        Prepare();
        const Launch launch = Bind("hang");
        const Error e = device_.RunEach({&launch, 1}, std::chrono::milliseconds(20));
        _exit(e.kind == ErrorKind::kTimeout ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hone::drivers::cuda
