// SPDX-License-Identifier: Apache-2.0
// Tests of programs with two units: what runs where, what crosses the borders, and what the caller sees. On a fake
// device beside this CPU, and on an OpenCL device, which is skipped, with the reason, where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "base/temporary_folder.h"
#include "deploy/package/memory_plan.h"
#include "deploy/runtime/model.h"
#include "tests/unit/drivers/opencl_device.h"
#include "tests/unit/runtime/fake_device.h"
#include "tests/unit/runtime/loaded_model.h"

namespace hone::tests {
namespace {

using runtime::ConstantsCheck;
using runtime::Fault;
using runtime::Model;
using runtime::ProgramView;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::HasSubstr;

constexpr size_t kBytes = kRows * kColumns * sizeof(float);

// Loads homes with lanes on the fake `device`, and others as the runtime does.
runtime::BackendLoader DeviceBesideCpu(FakeDevice* device) {
  return [device](const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                  const runtime::BackendOptions& options, std::unique_ptr<runtime::Backend>* backend) {
    const runtime::BackendLoader loader = program.homes[home].has_lanes ? LoaderFor(device) : runtime::LoadBackend;
    return loader(program, home, constants, options, backend);
  };
}

std::string WriteSplit(const TemporaryFolder& folder, const package::PackageProgram& program) {
  package::PackageContents contents = TinyContents("");
  contents.programs.clear();
  contents.metadata.programs.clear();
  AddProgram(contents, program, "opencl + cpu");
  WriteTinyPackage(folder / "split.hone", contents);
  return folder / "split.hone";
}

class SplitProgramTest : public ::testing::Test {
 protected:
  std::unique_ptr<Model> Load(const package::PackageProgram& program) {
    std::unique_ptr<Model> model;
    const Fault fault = Model::Load(WriteSplit(folder_, program), {.threads = 1}, ConstantsCheck::kFull, &model,
                                    DeviceBesideCpu(&device_));
    EXPECT_TRUE(fault.ok()) << fault.text;
    return model;
  }
  static std::vector<float> Output(const Model& model, size_t index) {
    DLTensor view;
    EXPECT_TRUE(model.OutputView(index, &view).ok());
    return Floats(view);
  }

  FakeDevice device_;
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::string kernels_ = CompileTinyKernels();
  const std::vector<float> x_ = TinyInput();
  FloatTensor input_{x_.data(), {kRows, kColumns}};
};

TEST_F(SplitProgramTest, EachUnitRunsItsCallsAndTensorsCrossTheBorders) {
  const std::unique_ptr<Model> model = Load(TinySplitProgram(TinyOpenClProgram(), kernels_));
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
    ASSERT_TRUE(model->Run().ok());
    EXPECT_THAT(Output(*model, 0), ElementsAreArray(TinySplitOutput()));
    EXPECT_THAT(Output(*model, 1), ElementsAreArray(x_));
    EXPECT_THAT(Output(*model, 2), ElementsAreArray(kBias));
    EXPECT_EQ(device_.reads, run) << "one copy for each border";
    EXPECT_EQ(device_.writes, run);
  }
  EXPECT_THAT(device_.launches, ElementsAre("add_bias", "add_bias", "add_bias", "add_bias", "add_bias", "add_bias"));
}

TEST_F(SplitProgramTest, AnInputThatBothUnitsReadIsGivenToBoth) {
  package::PackageProgram program = TinySplitProgram(TinyOpenClProgram(), kernels_);
  program.calls[1].arguments[0] = 0;  // the CPU scales x itself
  program.borders = {program.borders[1]};
  const std::unique_ptr<Model> model = Load(program);
  alignas(64) float x[kRows * kColumns], y[kRows * kColumns];
  const FloatTensor bound_x(x, {kRows, kColumns}), bound_y(y, {kRows, kColumns});
  ASSERT_TRUE(model->BindInput(0, &bound_x.tensor).ok());
  ASSERT_TRUE(model->BindOutput(0, &bound_y.tensor).ok());
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < std::size(x); ++i) x[i] = static_cast<float>(round) + static_cast<float>(i);
    ASSERT_TRUE(model->Run().ok());
    for (size_t i = 0; i < std::size(x); ++i) ASSERT_EQ(y[i], 2 * x[i] + kBias[i % kColumns]);
  }
}

// An output of one unit may be read by the other one.
TEST_F(SplitProgramTest, AnOutputCrossesABorderToo) {
  package::PackageProgram program = TinySplitProgram(TinyOpenClProgram(), kernels_);
  enum { kSum = 2, kXOut = 4 };
  program.copies = {program.copies[1]};
  program.calls[0].arguments[2] = kXOut;  // the sum is an output
  program.borders[0].source = kXOut;
  const std::unique_ptr<Model> model = Load(program);
  ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
  ASSERT_TRUE(model->Run().ok());
  EXPECT_THAT(Output(*model, 0), ElementsAreArray(TinySplitOutput()));
  EXPECT_THAT(Output(*model, 1), ElementsAreArray(TinyOutput(1)));
}

TEST_F(SplitProgramTest, TwoDevicesExchangeTensorsByWayOfThisProcess) {
  package::PackageProgram program = TinySplitProgram(TinyOpenClProgram(), kernels_);
  program.units[1] = program.units[0];
  program.kernels[1] = TinyOpenClProgram().kernels[1];
  package::AssignHomes(program);
  EXPECT_EQ(program.arena_bytes.size(), 2u);
  ASSERT_TRUE(package::PlanArena(program).ok());
  const std::unique_ptr<Model> model = Load(program);
  ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
  ASSERT_TRUE(model->Run().ok());
  EXPECT_THAT(Output(*model, 0), ElementsAreArray(TinySplitOutput()));
  EXPECT_EQ(device_.reads, 2);
  EXPECT_EQ(device_.writes, 2);
}

// Two kinds of code for CPUs may be in one package. They share one home, so that no border is between them.
TEST_F(SplitProgramTest, UnitsOfCpusShareTheirMemory) {
  package::PackageProgram program = TinyProgram(kernels_);
  program.units.push_back(program.units[0]);
  program.units[0].target = "cpu -mcpu=one";
  program.units[1].target = "cpu -mcpu=two";
  program.kernel_units = {0, 1};
  package::AssignHomes(program);
  EXPECT_EQ(program.arena_bytes.size(), 1u);
  ASSERT_TRUE(package::PlanArena(program).ok());
  const std::unique_ptr<Model> model = Load(program);
  ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
  ASSERT_TRUE(model->Run().ok());
  EXPECT_THAT(Output(*model, 0), ElementsAreArray(TinyOutput()));
}

// state = x; three times { sum = state + bias (device); next = 2 sum (CPU); swap(state, next) }; y = state + bias
// (device).
package::PackageProgram SplitLoop(const std::string& kernels) {
  package::PackageProgram program = TinySplitProgram(TinyOpenClProgram(), kernels);
  enum : package::TensorId { kX, kBiasTensor, kSum, kY, kSumOnCpu = 6, kState, kStateOnDevice, kNext, kResultOnDevice };
  program.tensors.push_back(program.tensors[kState]);
  program.tensors.push_back(program.tensors[kStateOnDevice]);
  program.calls[0].arguments[0] = kStateOnDevice;
  program.calls[1].arguments[1] = kNext;
  program.calls[2].arguments[0] = kResultOnDevice;
  program.borders = {{kState, kStateOnDevice, 0}, {kSum, kSumOnCpu, 1}, {kState, kResultOnDevice, 2}};
  const ir::OpenSize iteration = {"iteration", 0, 3};
  const ir::Size number = ir::Size::Open(iteration);
  program.sizes = {iteration};
  using package::ActionOp;
  program.actions = {{.op = ActionOp::kCopy, .call = 0, .source = kX, .target = kState},
                     {.op = ActionOp::kSetSize, .call = 0, .size = "iteration", .value = 0},
                     {.op = ActionOp::kLabel, .call = 0},
                     {.op = ActionOp::kJumpIfZero, .call = 0, .value = ir::Size(3) - number, .destination = 7},
                     {.op = ActionOp::kSwap, .call = 2, .source = kNext, .target = kState},
                     {.op = ActionOp::kSetSize, .call = 2, .size = "iteration", .value = number + ir::Size(1)},
                     {.op = ActionOp::kJump, .call = 2, .destination = 2},
                     {.op = ActionOp::kLabel, .call = 2}};
  EXPECT_TRUE(package::PlanArena(program).ok());
  return program;
}

std::vector<float> SplitLoopOutput() {
  std::vector<float> y = TinyInput();
  for (size_t i = 0; i < y.size(); ++i) {
    for (int round = 0; round < 3; ++round) y[i] = 2 * (y[i] + kBias[i % kColumns]);
    y[i] += kBias[i % kColumns];
  }
  return y;
}

TEST_F(SplitProgramTest, ALoopCrossesBordersInEveryIteration) {
  const std::unique_ptr<Model> model = Load(SplitLoop(kernels_));
  for (int run = 1; run <= 2; ++run) {
    ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
    ASSERT_TRUE(model->Run().ok());
    EXPECT_THAT(Output(*model, 0), ElementsAreArray(SplitLoopOutput()));
    EXPECT_THAT(Output(*model, 1), ElementsAreArray(x_));
    EXPECT_THAT(Output(*model, 2), ElementsAreArray(kBias));
    EXPECT_EQ(device_.reads, 3 * run);
    EXPECT_EQ(device_.writes, 4 * run);
  }
}

// The state is in the memory of the device: actions fill it from the CPU's.
TEST_F(SplitProgramTest, ActionsCopyFromOneHomeToAnother) {
  package::PackageProgram program = SplitLoop(kernels_);
  enum : package::TensorId { kY = 3, kOut = 4, kState = 7 };
  program.copies = {program.copies[1]};
  program.tensors[kOut].home = 0;
  program.actions.push_back({.op = package::ActionOp::kCopy, .call = 3, .source = kState, .target = kOut});
  ASSERT_TRUE(package::PlanArena(program).ok());
  const std::unique_ptr<Model> model = Load(program);
  ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
  ASSERT_TRUE(model->Run().ok());
  std::vector<float> state = SplitLoopOutput();
  for (size_t i = 0; i < state.size(); ++i) state[i] -= kBias[i % kColumns];
  EXPECT_THAT(Output(*model, 1), ElementsAreArray(state));
}

TEST_F(SplitProgramTest, AProfileHasTheTimesOfCallsAndBorders) {
  const std::unique_ptr<Model> model = Load(TinySplitProgram(TinyOpenClProgram(), kernels_));
  ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
  HoneBorder border;
  ASSERT_TRUE(model->Border(0, &border).ok());
  EXPECT_EQ(border.nanoseconds, 0);
  int64_t times[3] = {-1, -1, -1};
  ASSERT_TRUE(model->RunProfiled(times).ok());
  EXPECT_EQ(times[0], 100);
  EXPECT_GE(times[1], 0) << "by the clock of this machine";
  EXPECT_EQ(times[2], 102);
  ASSERT_TRUE(model->Border(1, &border).ok());
  EXPECT_STREQ(border.from, "cpu");
  EXPECT_STREQ(border.to, "device");
  EXPECT_EQ(border.call, 2u);
  EXPECT_EQ(border.bytes, kBytes);
  EXPECT_GT(border.nanoseconds, 0);
  EXPECT_EQ(model->Border(2, &border).text, "no border 2: the program has 2");
}

// The caller may free bound memory after an error, so no back end may still use it.
TEST_F(SplitProgramTest, AfterAnErrorAllUnitsAreWaitedFor) {
  const std::unique_ptr<Model> model = Load(TinySplitProgram(TinyOpenClProgram(), kernels_));
  ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
  device_.failure = "the device is gone";
  const Fault fault = model->Run();
  EXPECT_EQ(fault.code, HONE_IO_ERROR);
  EXPECT_EQ(device_.waits, 1);
}

TEST_F(SplitProgramTest, AfterAnExceptionOfAWatchAllUnitsAreWaitedFor) {
  package::PackageProgram program = TinySplitProgram(TinyOpenClProgram(), kernels_);
  program.values = {{"sum", 2, {}}};
  const std::unique_ptr<Model> model = Load(program);
  ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
  const HoneWatch fails = [](void*, const HoneValue*) { throw std::bad_alloc(); };
  EXPECT_THROW(static_cast<void>(model->RunWatched(fails, nullptr)), std::bad_alloc);
  EXPECT_EQ(device_.waits, 1);
  ASSERT_TRUE(model->Run().ok());
  EXPECT_THAT(Output(*model, 0), ElementsAreArray(TinySplitOutput()));
}

TEST_F(SplitProgramTest, AUnitThatCannotRunHereIsNamed) {
  package::PackageProgram program = TinySplitProgram(TinyOpenClProgram(), kernels_);
  program.units[1].cpu_features = {"warp-drive"};
  std::unique_ptr<Model> model;
  const Fault fault = Model::Load(WriteSplit(folder_, program), {.threads = 1}, ConstantsCheck::kFull, &model,
                                  DeviceBesideCpu(&device_));
  EXPECT_EQ(fault.code, HONE_INCOMPATIBLE);
  EXPECT_THAT(fault.text, HasSubstr("unit for 'cpu': the code needs warp-drive"));
}

class SplitOpenClTest : public OpenClTest {};

TEST_F(SplitOpenClTest, ALoopCrossesBordersInEveryIteration) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const LoadedModel model(WriteSplit(folder, SplitLoop(CompileTinyKernels())));
  const std::vector<float> x = TinyInput();
  const FloatTensor input(x.data(), {kRows, kColumns});
  for (int run = 0; run < 3; ++run) {
    ASSERT_EQ(hone_set_input(model, 0, &input.tensor), HONE_OK);
    ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
    EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(SplitLoopOutput()));
  }
}

TEST_F(SplitOpenClTest, ComputesAsOneUnitDoes) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const LoadedModel model(WriteSplit(folder, TinySplitProgram(TinyOpenClProgram(), CompileTinyKernels())));
  EXPECT_STREQ(hone_target(model), "opencl + cpu");
  EXPECT_EQ(hone_threads(model), 2);
  EXPECT_STREQ(hone_call_target(model, 0), "device");
  EXPECT_STREQ(hone_call_target(model, 1), "cpu");
  EXPECT_EQ(hone_call_target(model, 3), nullptr);
  EXPECT_EQ(hone_border_count(model), 2u);
  const std::vector<float> x = TinyInput();
  const FloatTensor input(x.data(), {kRows, kColumns});
  for (int run = 0; run < 3; ++run) {
    ASSERT_EQ(hone_set_input(model, 0, &input.tensor), HONE_OK);
    ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
    EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinySplitOutput()));
    EXPECT_THAT(OutputOf(model, 1), ElementsAreArray(x));
    EXPECT_THAT(OutputOf(model, 2), ElementsAreArray(kBias));
  }
  int64_t times[3] = {-1, -1, -1};
  ASSERT_EQ(hone_run_profiled(model, times, 3), HONE_OK) << hone_error();
  EXPECT_THAT(times, Each(Gt(-1)));
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinySplitOutput()));
}

}  // namespace
}  // namespace hone::tests
