// SPDX-License-Identifier: Apache-2.0
// Tests of the CUDA back end: the tiny package through the C interface, on a fake driver. The fake is loaded before the
// runtime looks up the driver by name. Therefore this is a program of its own, and it is built a second time with the
// fake driver of an old board.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/temporary_folder.h"
#include "tests/unit/runtime/loaded_model.h"

namespace hone::tests {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kElements = kRows * kColumns;

class CudaBackendTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    driver_ = dlopen(HONE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(driver_, nullptr) << dlerror();
  }
  void SetUp() override { setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1); }

  void TearDown() override {
    unsetenv("HONE_FAKE_CUDA_MEMORY");
    EXPECT_EQ(Current(), nullptr) << "the thread's context is not what it was";
    EXPECT_EQ(Call("hone_fake_cuda_alive"), contexts_) << "contexts, modules, events or graphs were not given back";
  }

  // A function of the driver, as other libraries of the process call it.
  template <typename... P>
  static int Call(const char* name, P... arguments) {
    return reinterpret_cast<int (*)(P...)>(dlsym(driver_, name))(arguments...);
  }
  static void* Current() {
    void* context = nullptr;
    EXPECT_EQ(Call("cuCtxGetCurrent", &context), 0);
    return context;
  }

  // Memory of the device, as another library of the process has it. With the fake driver this process can read it.
  static float* OnDevice() {
    void* context = nullptr;
    unsigned long long place = 0;
    EXPECT_EQ(Call("cuDevicePrimaryCtxRetain", &context, 0), 0);
    ++contexts_;
    EXPECT_EQ(Call("cuCtxPushCurrent_v2", context), 0);
    EXPECT_EQ(Call("cuMemAlloc_v2", &place, (kElements + 1) * sizeof(float)), 0);
    EXPECT_EQ(Call("cuCtxPopCurrent_v2", &context), 0);
    return reinterpret_cast<float*>(place);
  }
  static DLTensor Tensor(const FloatTensor& tensor, int32_t device) {
    DLTensor moved = tensor.tensor;
    moved.device = {kDLCUDA, device};
    return moved;
  }
  // `count`, or 0 if this driver has no graphs.
  static int Graphs(int count) { return dlsym(driver_, "cuGraphInstantiateWithFlags") != nullptr ? count : 0; }

  // The program that the device shares with this CPU.
  static package::PackageProgram Split() { return TinySplitProgram(TinyCudaProgram(), CompileTinyKernels()); }
  std::string Write(const package::PackageProgram& program = TinyCudaProgram()) {
    package::PackageContents contents = TinyContents("");
    contents.programs = {};
    contents.metadata.programs = {};
    AddProgram(contents, program, "cuda -arch=sm_53");
    WriteTinyPackage(folder_ / "tiny.hone", contents);
    return folder_ / "tiny.hone";
  }
  void ExpectItRuns(HoneModel* model) {
    ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK) << hone_error();
    ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
    EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
    EXPECT_THAT(OutputOf(model, 1), ElementsAreArray(x_));
    EXPECT_THAT(OutputOf(model, 2), ElementsAreArray(kBias));
  }

  static inline void* driver_ = nullptr;
  static inline int contexts_ = 0;  // that the other library has asked for
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::vector<float> x_ = TinyInput();
  FloatTensor input_{x_.data(), {kRows, kColumns}};
};

TEST_F(CudaBackendTest, RunsAsOneGraphAgainAndAgain) {
  const LoadedModel model(Write());
  EXPECT_STREQ(hone_target(model), "cuda -arch=sm_53");
  const int made = Call("hone_fake_cuda_graphs_made"), launched = Call("hone_fake_cuda_graphs_launched"),
            launches = Call("hone_fake_cuda_launches");
  for (int i = 0; i < 3; ++i) ExpectItRuns(model);
  EXPECT_EQ(Call("hone_fake_cuda_graphs_made") - made, Graphs(1));
  EXPECT_EQ(Call("hone_fake_cuda_graphs_launched") - launched, Graphs(3));
  EXPECT_EQ(Call("hone_fake_cuda_launches") - launches, Graphs(1) == 1 ? 0 : 3 * 3) << "by themselves";
}

// Runs without a graph, which has no place for a watch, and leaves the graph as it is.
TEST_F(CudaBackendTest, AWatchedRunShowsCopiesOfValues) {
  package::PackageProgram program = TinyCudaProgram();
  NameValues(program);
  const LoadedModel model(Write(program));
  ExpectItRuns(model);
  const int made = Call("hone_fake_cuda_graphs_made"), launched = Call("hone_fake_cuda_graphs_launched");
  ExpectNamedValues(ValuesOfRun(model));
  EXPECT_EQ(Call("hone_fake_cuda_graphs_launched"), launched);
  ExpectItRuns(model);
  EXPECT_EQ(Call("hone_fake_cuda_graphs_made"), made);
}

// The first run at new sizes launches kernels by themselves, the second one records a graph, and further ones launch
// it.
TEST_F(CudaBackendTest, RecordsAGraphWhenSizesComeASecondTime) {
  package::PackageProgram program = TinyCudaProgram();
  OpenRows(program);
  const LoadedModel model(Write(program));
  struct Step {
    int64_t rows;
    int launches, graphs_made, graphs_launched;
  };
  const Step steps[] = {{4, 3, 0, 0}, {4, 0, 1, 1}, {4, 0, 0, 1}, {2, 3, 0, 0}, {0, 0, 0, 0}, {2, 3, 0, 0},
                        {2, 0, 1, 1}, {2, 0, 0, 1}, {1, 3, 0, 0}, {4, 3, 0, 0}, {4, 0, 1, 1}};
  for (const Step& step : steps) {
    SCOPED_TRACE(step.rows);
    const int made = Call("hone_fake_cuda_graphs_made"), launched = Call("hone_fake_cuda_graphs_launched"),
              launches = Call("hone_fake_cuda_launches");
    ExpectRowsRun(model, step.rows, TinyOutput());
    EXPECT_EQ(Call("hone_fake_cuda_graphs_made") - made, Graphs(step.graphs_made));
    EXPECT_EQ(Call("hone_fake_cuda_graphs_launched") - launched, Graphs(step.graphs_launched));
    EXPECT_EQ(Call("hone_fake_cuda_launches") - launches, Graphs(1) == 1 ? step.launches : (step.rows == 0 ? 0 : 3));
  }
}

TEST_F(CudaBackendTest, TensorsOnTheDeviceHaveTheirCurrentSizes) {
  package::PackageProgram program = TinyCudaProgram();
  OpenRows(program);
  const LoadedModel model(Write(program));
  float* const x = OnDevice();
  float* const y = OnDevice();
  std::copy(x_.begin(), x_.end(), x);
  const FloatTensor all_rows(y, {kRows, kColumns});
  const DLTensor bound_y = Tensor(all_rows, 0);
  ASSERT_EQ(hone_bind_output(model, 0, &bound_y), HONE_OK) << hone_error();
  for (const int64_t rows : {2, 4, 1, 0}) {
    std::fill(y, y + kElements, -99.0F);
    const FloatTensor some_rows(x, {rows, kColumns});
    const DLTensor bound_x = Tensor(some_rows, 0);
    ASSERT_EQ(hone_bind_input(model, 0, &bound_x), HONE_OK) << hone_error();
    ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
    const std::vector<float> whole = TinyOutput();
    for (size_t i = 0; i < kElements; ++i) {
      ASSERT_EQ(y[i], i < static_cast<size_t>(rows * kColumns) ? whole[i] : -99) << i << " of " << rows << " rows";
    }
  }
}

TEST_F(CudaBackendTest, SharesAProgramWithOpenSizesWithTheCpu) {
  package::PackageProgram program = Split();
  OpenRows(program);
  const LoadedModel model(Write(program));
  for (const int64_t rows : {4, 4, 1, 0, 3, 3, 3}) ExpectRowsRun(model, rows, TinySplitOutput());
}

// Recording may fail, for example while another library of the process uses the device.
TEST_F(CudaBackendTest, RunsLaunchByLaunchWithoutGraphSupport) {
  setenv("HONE_FAKE_CUDA_CAPTURE", "901", 1);
  const LoadedModel model(Write());
  const int made = Call("hone_fake_cuda_graphs_made"), launches = Call("hone_fake_cuda_launches");
  for (int i = 0; i < 3; ++i) ExpectItRuns(model);
  unsetenv("HONE_FAKE_CUDA_CAPTURE");
  EXPECT_EQ(Call("hone_fake_cuda_graphs_made") - made, 0);
  EXPECT_EQ(Call("hone_fake_cuda_launches") - launches, 3 * 3);
}

TEST_F(CudaBackendTest, SeesWhatTheCallerWritesBetweenRuns) {
  const LoadedModel model(Write());
  ExpectWritesAreSeen(model, x_);
}

TEST_F(CudaBackendTest, ProfilesByTheDevicesClock) {
  const LoadedModel model(Write());
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  int64_t times[2] = {-1, -1};
  ASSERT_EQ(hone_run_profiled(model, times, 2), HONE_OK) << hone_error();
  EXPECT_THAT(times, Each(Gt(-1)));
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
}

// A kernel whose output has no elements has no launches.
TEST_F(CudaBackendTest, AKernelThatLaunchesNothingTakesNoTime) {
  package::PackageProgram program = TinyCudaProgram();
  LaunchNothingForY(program);
  const LoadedModel model(Write(program));
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  int64_t times[2] = {-1, -1};
  ASSERT_EQ(hone_run_profiled(model, times, 2), HONE_OK) << hone_error();
  EXPECT_EQ(times[1], 0);
  EXPECT_EQ(hone_run(model), HONE_OK) << hone_error();
}

TEST_F(CudaBackendTest, TakesAndGivesTensorsThatAreOnTheDevice) {
  const LoadedModel model(Write());
  ExpectItRuns(model);  // the graph is recorded with everything in this process
  float* const x = OnDevice();
  float* const y = OnDevice();
  const FloatTensor shape(x, {kRows, kColumns}), other_shape(y, {kRows, kColumns});
  const DLTensor bound_x = Tensor(shape, 0), bound_y = Tensor(other_shape, 0);
  ASSERT_EQ(hone_bind_input(model, 0, &bound_x), HONE_OK) << hone_error();
  ASSERT_EQ(hone_bind_output(model, 0, &bound_y), HONE_OK) << hone_error();
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kElements; ++i) x[i] = static_cast<float>(round) + static_cast<float>(i);
    ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
    for (size_t i = 0; i < kElements; ++i) ASSERT_EQ(y[i], 2 * (x[i] + kBias[i % kColumns])) << i;
    EXPECT_THAT(OutputOf(model, 1), ElementsAreArray(x, kElements)) << "which is in this process";
  }
  DLTensor view;
  ASSERT_EQ(hone_get_output(model, 0, &view), HONE_OK);
  EXPECT_EQ(view.device.device_type, kDLCUDA);
  EXPECT_EQ(view.data, y);
  // Other memory of the device needs no new graph; memory of this process does.
  float* const z = OnDevice();
  const FloatTensor third_shape(z, {kRows, kColumns});
  const DLTensor bound_z = Tensor(third_shape, 0);
  const int made = Call("hone_fake_cuda_graphs_made");
  ASSERT_EQ(hone_bind_output(model, 0, &bound_z), HONE_OK);
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(std::vector<float>(z, z + kElements), ElementsAreArray(y, kElements));
  EXPECT_EQ(Call("hone_fake_cuda_graphs_made"), made);
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(std::vector<float>(z, z + kElements), ElementsAreArray(TinyOutput()));
  EXPECT_EQ(Call("hone_fake_cuda_graphs_made"), made + Graphs(1));
}

TEST_F(CudaBackendTest, SharesAProgramWithTheCpu) {
  const LoadedModel model(Write(Split()));
  const int made = Call("hone_fake_cuda_graphs_made"), launched = Call("hone_fake_cuda_graphs_launched");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
    ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
    EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinySplitOutput()));
    EXPECT_THAT(OutputOf(model, 1), ElementsAreArray(x_));
    EXPECT_THAT(OutputOf(model, 2), ElementsAreArray(kBias));
  }
  EXPECT_EQ(Call("hone_fake_cuda_graphs_made") - made, Graphs(2)) << "one for each segment";
  EXPECT_EQ(Call("hone_fake_cuda_graphs_launched") - launched, Graphs(6));
  int64_t times[3] = {-1, -1, -1};
  ASSERT_EQ(hone_run_profiled(model, times, 3), HONE_OK) << hone_error();
  EXPECT_THAT(times, Each(Gt(-1)));
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinySplitOutput()));
}

// Memory of the device is in reach of its unit only.
TEST_F(CudaBackendTest, TakesTensorsOnTheDeviceThatOnlyItsUnitUses) {
  package::PackageProgram program = Split();
  const LoadedModel model(Write(program));
  float* const x = OnDevice();
  std::copy(x_.begin(), x_.end(), x);
  const FloatTensor shape(x, {kRows, kColumns});
  const DLTensor bound_x = Tensor(shape, 0);
  ASSERT_EQ(hone_bind_input(model, 0, &bound_x), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinySplitOutput()));
  program.calls[1].arguments[0] = 0;  // the CPU reads x, too
  program.borders = {program.borders[1]};
  const LoadedModel shared(Write(program));
  EXPECT_EQ(hone_bind_input(shared, 0, &bound_x), HONE_INVALID_ARGUMENT);
  EXPECT_STREQ(hone_error(), "tensor for 'x' is on CUDA device 0; the program that runs takes CPU memory alone");
}

TEST_F(CudaBackendTest, TakesManagedMemoryOfTheDeviceAndGivesItBack) {
  const LoadedModel model(Write());
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  float* const y = OnDevice();
  const FloatTensor shape(y, {kRows, kColumns});
  DLTensor managed = Tensor(shape, 0);
  managed.device.device_type = kDLCUDAManaged;
  ASSERT_EQ(hone_bind_output(model, 0, &managed), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(std::vector<float>(y, y + kElements), ElementsAreArray(TinyOutput()));
  y[0] = -1;
  ASSERT_EQ(hone_bind_output(model, 0, nullptr), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  EXPECT_EQ(y[0], -1) << "it is the caller's again";
}

// Each run copies bound device memory, so a view into a larger tensor is sufficient.
TEST_F(CudaBackendTest, TensorsOnTheDeviceAreAlignedToTheirElements) {
  const LoadedModel model(Write());
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  float* const y = OnDevice();
  const FloatTensor shape(y, {kRows, kColumns});
  DLTensor bound = Tensor(shape, 0);
  bound.byte_offset = sizeof(float);
  ASSERT_EQ(hone_bind_output(model, 0, &bound), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(std::vector<float>(y + 1, y + 1 + kElements), ElementsAreArray(TinyOutput()));
  bound.byte_offset = 2;
  EXPECT_EQ(hone_bind_output(model, 0, &bound), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("does not start on a multiple of 4 bytes, the size of an element"));
  bound.device = {kDLCPU, 0};
  bound.byte_offset = sizeof(float);
  EXPECT_EQ(hone_bind_output(model, 0, &bound), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("does not start on a multiple of 64 bytes; align it, or let the model copy it"));
}

// Another library, such as PyTorch, may use another context in this thread.
TEST_F(CudaBackendTest, TheCallersContextStays) {
  int others = 0;
  void* popped = nullptr;
  ASSERT_EQ(Call("cuCtxPushCurrent_v2", static_cast<void*>(&others)), 0);
  const std::string path = Write();
  {
    const LoadedModel model(path);
    ASSERT_EQ(Current(), &others) << "after hone_load";
    ExpectItRuns(model);
    ASSERT_EQ(Current(), &others) << "after hone_run";
    const FloatTensor shape(OnDevice(), {kRows, kColumns});
    const DLTensor bound = Tensor(shape, 0);
    ASSERT_EQ(hone_bind_input(model, 0, &bound), HONE_OK) << hone_error();
    ASSERT_EQ(Current(), &others) << "after hone_bind_input";
    const DLTensor elsewhere = Tensor(shape, 1);
    EXPECT_EQ(hone_bind_input(model, 0, &elsewhere), HONE_INVALID_ARGUMENT);
    ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
    ASSERT_EQ(Current(), &others) << "after a call that failed";
  }
  EXPECT_EQ(Current(), &others) << "after hone_free";
  EXPECT_EQ(Call("cuCtxPopCurrent_v2", &popped), 0);
}

// Runs in a child process, because the device cannot be used afterwards.
TEST_F(CudaBackendTest, ReportsDestroyedContext) {
  const std::string path = Write();
  EXPECT_EXIT(
      {
        HoneModel* model = nullptr;
        if (hone_load(path.c_str(), nullptr, &model) != HONE_OK) _exit(2);
        if (hone_set_input(model, 0, &input_.tensor) != HONE_OK) _exit(3);
        Call("cuDevicePrimaryCtxReset_v2", 0);
        const HoneStatus status = hone_run(model);
        const std::string error = hone_error();
        hone_free(model);
        const bool told = status == HONE_IO_ERROR && error.find("CONTEXT_IS_DESTROYED") != std::string::npos;
        _exit(told && Current() == nullptr ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(CudaBackendTest, SaysWhenTheDeviceHasTooLittleMemory) {
  setenv("HONE_FAKE_CUDA_MEMORY", "0", 1);
  HoneModel* model = nullptr;
  EXPECT_EQ(hone_load(Write().c_str(), nullptr, &model), HONE_OUT_OF_MEMORY);
  EXPECT_THAT(hone_error(), HasSubstr("bytes on 'Fake CUDA device'"));
  EXPECT_THAT(hone_error(), Not(HasSubstr(" 0 bytes")));
  EXPECT_THAT(hone_error(), HasSubstr("free memory of the device"));
}

TEST_F(CudaBackendTest, RefusesTensorsOfAnotherDevice) {
  const LoadedModel model(Write());
  const FloatTensor shape(OnDevice(), {kRows, kColumns});
  const DLTensor second = Tensor(shape, 1), copied = Tensor(shape, 0);
  EXPECT_EQ(hone_bind_input(model, 0, &second), HONE_INVALID_ARGUMENT);
  const std::string taken =
      "; the program that runs takes CPU memory and, to be bound, that of CUDA device 0, 'Fake CUDA device'";
  EXPECT_EQ(hone_error(), "tensor for 'x' is on CUDA device 1" + taken);
  EXPECT_EQ(hone_set_input(model, 0, &copied), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_error(), "tensor for 'x' is on CUDA device 0" + taken);
  DLTensor opencl = copied;
  opencl.device = {kDLOpenCL, 0};
  EXPECT_EQ(hone_bind_input(model, 0, &opencl), HONE_INVALID_ARGUMENT);
  ExpectItRuns(model);
}

}  // namespace
}  // namespace hone::tests
