// The tiny package on a CUDA device, through the C interface. The driver is a fake one, loaded before the runtime asks
// for it by name, so this is a program of its own.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/temporary_folder.h"
#include "tests/unit/runtime/loaded_model.h"

namespace hone::tests {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::Gt;
using ::testing::HasSubstr;

constexpr size_t kElements = kRows * kColumns;

class CudaBackendTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    driver_ = dlopen(HONE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(driver_, nullptr) << dlerror();
  }
  void SetUp() override { setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1); }

  // Memory of the device, as another library of the process has it. With the fake driver this process can read it.
  static float* OnDevice() {
    unsigned long long place = 0;
    const auto allocate = reinterpret_cast<int (*)(unsigned long long*, size_t)>(dlsym(driver_, "cuMemAlloc_v2"));
    EXPECT_EQ(allocate(&place, kElements * sizeof(float)), 0);
    return reinterpret_cast<float*>(place);
  }
  static DLTensor Tensor(const FloatTensor& tensor, int32_t device) {
    DLTensor moved = tensor.tensor;
    moved.device = {kDLCUDA, device};
    return moved;
  }
  std::string Write() {
    package::PackageContents contents = TinyContents("");
    contents.programs = {};
    contents.metadata.programs = {};
    AddProgram(contents, TinyCudaProgram(), "cuda -arch=sm_53");
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
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::vector<float> x_ = TinyInput();
  FloatTensor input_{x_.data(), {kRows, kColumns}};
};

TEST_F(CudaBackendTest, RunsAsOneGraphAgainAndAgain) {
  const LoadedModel model(Write());
  EXPECT_STREQ(hone_target(model), "cuda -arch=sm_53");
  for (int i = 0; i < 3; ++i) ExpectItRuns(model);
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
  ASSERT_EQ(hone_bind_output(model, 0, &bound_z), HONE_OK);
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(std::vector<float>(z, z + kElements), ElementsAreArray(TinyOutput()));
}

TEST_F(CudaBackendTest, RefusesTensorsThatAreSomewhereElse) {
  const LoadedModel model(Write());
  const FloatTensor shape(OnDevice(), {kRows, kColumns});
  const DLTensor second = Tensor(shape, 1), copied = Tensor(shape, 0);
  EXPECT_EQ(hone_bind_input(model, 0, &second), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("CUDA device 1; the model runs on 0, 'Fake CUDA device'"));
  EXPECT_EQ(hone_set_input(model, 0, &copied), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("can be bound, not copied"));
  DLTensor opencl = copied;
  opencl.device = {kDLOpenCL, 0};
  EXPECT_EQ(hone_bind_input(model, 0, &opencl), HONE_INVALID_ARGUMENT);
  ExpectItRuns(model);
}

}  // namespace
}  // namespace hone::tests
