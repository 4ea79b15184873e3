// SPDX-License-Identifier: Apache-2.0
// Tests of packages for several targets, with a fake device: which program is taken, and the rules that hold for every
// back end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "base/temporary_folder.h"
#include "deploy/runtime/cpu_features.h"
#include "deploy/runtime/model.h"
#include "tests/unit/runtime/fake_device.h"
#include "tests/unit/runtime/loaded_model.h"

namespace hone::tests {
namespace {

using runtime::Backend;
using runtime::ConstantsCheck;
using runtime::Fault;
using runtime::Model;
using runtime::ProgramView;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Loads OpenCL programs on the fake `device`, and other programs as the runtime does.
runtime::BackendLoader DeviceOrCpu(FakeDevice* device) {
  return [device](const ProgramView& program, uint32_t home, std::span<const uint8_t> constants,
                  const runtime::BackendOptions& options, std::unique_ptr<Backend>* backend) {
    const bool for_device = program.homes[home].has_lanes;
    const runtime::BackendLoader loader = for_device ? LoaderFor(device) : runtime::LoadBackend;
    return loader(program, home, constants, options, backend);
  };
}

CodeKind ForeignCpu() { return *runtime::HostCode() == CodeKind::kX86_64 ? CodeKind::kAArch64 : CodeKind::kX86_64; }

class SeveralProgramsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { kernels_ = CompileTinyKernels(); }

  // A package of an OpenCL program and then one for this CPU.
  std::string WriteDeviceAndCpu() {
    package::PackageContents contents = TinyContents("");
    contents.programs.clear();
    contents.metadata.programs.clear();
    AddProgram(contents, TinyOpenClProgram(), "opencl");
    AddProgram(contents, TinyProgram(kernels_), "cpu");
    return Write(contents);
  }
  std::string Write(const package::PackageContents& contents) {
    WriteTinyPackage(folder_ / "several.hone", contents);
    return folder_ / "several.hone";
  }
  static std::unique_ptr<Model> Load(const std::string& path, const runtime::BackendLoader& loader) {
    std::unique_ptr<Model> model;
    const Fault fault = Model::Load(path, {.threads = 1}, ConstantsCheck::kFull, &model, loader);
    EXPECT_TRUE(fault.ok()) << fault.text;
    return model;
  }
  static std::string TargetOf(const Model& model) { return std::string(model.program().Text(model.program().target)); }
  static std::vector<float> Output(const Model& model, size_t index) {
    DLTensor view;
    EXPECT_TRUE(model.OutputView(index, &view).ok());
    return Floats(view);
  }

  static std::string kernels_;
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::vector<float> x_ = TinyInput();
  FloatTensor input_{x_.data(), {kRows, kColumns}};
};
std::string SeveralProgramsTest::kernels_;

TEST_F(SeveralProgramsTest, TheFirstOneThatRunsHereIsTaken) {
  FakeDevice device;
  const std::unique_ptr<Model> model = Load(WriteDeviceAndCpu(), DeviceOrCpu(&device));
  EXPECT_EQ(TargetOf(*model), "opencl");
  EXPECT_EQ(model->passed_over(), "");
  ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
  ASSERT_TRUE(model->Run().ok());
  EXPECT_THAT(device.launches, ElementsAre("add_bias", "scale_up", "scale_out"));
  EXPECT_THAT(Output(*model, 0), ElementsAreArray(TinyOutput()));
  EXPECT_THAT(Output(*model, 1), ElementsAreArray(x_));
  EXPECT_THAT(Output(*model, 2), ElementsAreArray(kBias));
}

TEST_F(SeveralProgramsTest, IncompatibleProgramIsSkippedWithItsReason) {
  package::PackageContents contents = TinyContents(kernels_);
  package::PackageProgram foreign = contents.programs[0];
  foreign.units[0].kind = ForeignCpu();
  contents.programs.clear();
  contents.metadata.programs.clear();
  AddProgram(contents, foreign, "foreign");
  AddProgram(contents, TinyProgram(kernels_), "cpu");
  const LoadedModel model(Write(contents));
  EXPECT_STREQ(hone_target(model), "cpu");
  EXPECT_EQ(std::string(hone_passed_over(model)).find('\n'), std::string::npos) << "a line for each";
  EXPECT_THAT(hone_passed_over(model),
              HasSubstr("program for 'foreign': the code is for " + std::string(FindCodeKind(ForeignCpu())->name)));
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
}

TEST_F(SeveralProgramsTest, ACallerMayExcludeDevices) {
  const std::string path = WriteDeviceAndCpu();
  for (const char* const device : {"cpu", "cpu:2", "cuda:1"}) {
    const HoneLoadOptions options = {sizeof(HoneLoadOptions), 1, 0, device};
    HoneModel* model = nullptr;
    ASSERT_EQ(hone_load(path.c_str(), &options, &model), HONE_OK) << hone_error();
    EXPECT_STREQ(hone_target(model), "cpu");
    EXPECT_EQ(
        std::string(hone_passed_over(model)),
        "program for 'opencl': the code is for OpenCL, and only the device '" + std::string(device) + "' may be used");
    hone_free(model);
  }
  const HoneLoadOptions other = {sizeof(HoneLoadOptions), 1, 0, "opencl:no-such-device"};
  HoneModel* model = nullptr;
  ASSERT_EQ(hone_load(path.c_str(), &other, &model), HONE_OK) << hone_error();
  EXPECT_STREQ(hone_target(model), "cpu");
  EXPECT_THAT(hone_passed_over(model), ::testing::AnyOf(HasSubstr("no-such-device"), HasSubstr("libOpenCL")));
  hone_free(model);
}

TEST_F(SeveralProgramsTest, ErrorNamesTheReasonOfEveryProgram) {
  package::PackageContents contents = TinyContents(kernels_);
  contents.programs[0].units[0].kind = ForeignCpu();
  package::PackageProgram needy = TinyProgram(kernels_);
  needy.units[0].cpu_features = {"warp-drive"};
  AddProgram(contents, needy, "cpu -mattr=+warp-drive");
  HoneModel* model = nullptr;
  EXPECT_EQ(hone_load(Write(contents).c_str(), nullptr, &model), HONE_INCOMPATIBLE);
  EXPECT_EQ(model, nullptr);
  EXPECT_THAT(hone_error(), HasSubstr("this machine can run none of the package's programs: program for 'cpu': the "
                                      "code is for " +
                                      std::string(FindCodeKind(ForeignCpu())->name)));
  EXPECT_THAT(hone_error(), HasSubstr("; program for 'cpu -mattr=+warp-drive': the code needs warp-drive"));
}

TEST_F(SeveralProgramsTest, DamagedProgramIsNotSkipped) {
  package::PackageContents contents = TinyContents("no ELF file");
  AddProgram(contents, TinyProgram(kernels_), "cpu -mcpu=second");
  HoneModel* model = nullptr;
  EXPECT_EQ(hone_load(Write(contents).c_str(), nullptr, &model), HONE_BAD_PACKAGE);
  EXPECT_THAT(hone_error(), HasSubstr("not an ELF file"));
}

TEST_F(SeveralProgramsTest, ADeviceSeesWhatItsCallerWritesBetweenRuns) {
  FakeDevice device;
  const std::unique_ptr<Model> model = Load(WriteDeviceAndCpu(), DeviceOrCpu(&device));
  DLTensor view;
  ASSERT_TRUE(model->InputView(0, &view).ok());
  std::memcpy(view.data, x_.data(), x_.size() * sizeof(float));
  ASSERT_TRUE(model->Run().ok());
  EXPECT_THAT(Output(*model, 0), ElementsAreArray(TinyOutput()));

  alignas(64) float x[kRows * kColumns], y[kRows * kColumns];
  std::copy(x_.begin(), x_.end(), x);
  const FloatTensor bound_x(x, {kRows, kColumns}), bound_y(y, {kRows, kColumns});
  ASSERT_TRUE(model->BindInput(0, &bound_x.tensor).ok());
  ASSERT_TRUE(model->BindOutput(0, &bound_y.tensor).ok());
  for (int round = 0; round < 2; ++round) {
    x[0] += 100;
    ASSERT_TRUE(model->Run().ok());
    EXPECT_EQ(y[0], 2 * (x[0] + kBias[0]));
    EXPECT_EQ(y[1], TinyOutput()[1]);
  }
  EXPECT_EQ(device.uploads_of_constants, 1);
}

TEST_F(SeveralProgramsTest, ADevicesTimesAndFailuresReachTheCaller) {
  FakeDevice device;
  const std::unique_ptr<Model> model = Load(WriteDeviceAndCpu(), DeviceOrCpu(&device));
  ASSERT_TRUE(model->SetInput(0, input_.tensor).ok());
  int64_t times[2] = {};
  ASSERT_TRUE(model->RunProfiled(times).ok());
  EXPECT_THAT(times, ElementsAre(100, 101));
  EXPECT_EQ(model->threads(), 1);
  device.failure = "the device is gone";
  const Fault fault = model->Run();
  EXPECT_EQ(fault.code, HONE_IO_ERROR);
  EXPECT_EQ(fault.text, "the device is gone");
}

}  // namespace
}  // namespace hone::tests
