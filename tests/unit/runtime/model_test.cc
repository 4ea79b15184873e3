// SPDX-License-Identifier: Apache-2.0
// Tests of the C interface: loading and running the tiny package on the CPU, and the errors for callers' mistakes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include "base/temporary_folder.h"
#include "tests/unit/runtime/loaded_model.h"

namespace hone::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ModelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>(TemporaryFolder::Create().value());
    WriteTinyPackage(Path(), TinyContents(CompileTinyKernels()));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string Path() { return *folder_ / "tiny.hone"; }

  static std::unique_ptr<TemporaryFolder> folder_;
  const std::vector<float> x_ = TinyInput();
  FloatTensor input_{x_.data(), {kRows, kColumns}};
};
std::unique_ptr<TemporaryFolder> ModelTest::folder_;

struct AlignedFloats {
  explicit AlignedFloats(size_t count)
      : data(static_cast<float*>(std::aligned_alloc(64, (count * 4 + 127) / 64 * 64))) {
    std::fill_n(data, count, -1.0f);
  }
  ~AlignedFloats() { std::free(data); }
  float* data;
};

TEST_F(ModelTest, RunsKernelsInOrderAndCopiesAliasedOutputs) {
  const LoadedModel model(Path());
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  EXPECT_THAT(OutputOf(model, 1), ElementsAreArray(x_));
  EXPECT_THAT(OutputOf(model, 2), ElementsAreArray(kBias));
}

TEST_F(ModelTest, LoadsAnOpenFile) {
  const int file = open(Path().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  lseek(file, 100, SEEK_SET);  // the position does not count
  HoneModel* model = nullptr;
  ASSERT_EQ(hone_load_file(file, "a name", nullptr, &model), HONE_OK) << hone_error();
  EXPECT_EQ(lseek(file, 0, SEEK_CUR), 100) << "it was read, or closed";
  close(file);
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  hone_free(model);
}

TEST_F(ModelTest, AnOpenFileThatIsNoPackageIsAnError) {
  HoneModel* model = nullptr;
  EXPECT_EQ(hone_load_file(-1, nullptr, nullptr, &model), HONE_IO_ERROR);
  EXPECT_THAT(hone_error(), HasSubstr("cannot look at the package: "));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(hone_load_file(ends[0], "model.hone", nullptr, &model), HONE_IO_ERROR);
  EXPECT_THAT(hone_error(), HasSubstr("package 'model.hone' is not a regular file"));
  for (const int end : ends) close(end);
  EXPECT_EQ(hone_load_file(0, nullptr, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(model, nullptr);
}

TEST_F(ModelTest, PreparingChecksTheInputsAndRunsNothing) {
  const LoadedModel model(Path());
  EXPECT_EQ(hone_prepare(model), HONE_INVALID_ARGUMENT);
  EXPECT_STREQ(hone_error(), "input 'x' has never been set");
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  ASSERT_EQ(hone_prepare(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ::testing::Each(0.0f));
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
}

TEST_F(ModelTest, DescribesItsPorts) {
  const LoadedModel model(Path());
  ASSERT_EQ(hone_input_count(model), 1u);
  ASSERT_EQ(hone_output_count(model), 3u);
  HonePort port;
  ASSERT_EQ(hone_input(model, 0, &port), HONE_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.dtype.code, kDLFloat);
  EXPECT_EQ(port.dtype.bits, 32);
  EXPECT_EQ(port.bytes, 128u);
  EXPECT_THAT(std::vector<int64_t>(port.shape, port.shape + port.ndim), ElementsAre(4, 8));
  ASSERT_EQ(hone_output(model, 2, &port), HONE_OK);
  EXPECT_STREQ(port.name, "bias_out");
  EXPECT_THAT(std::vector<int64_t>(port.shape, port.shape + port.ndim), ElementsAre(8));
  size_t bytes = 0;
  const char* metadata = hone_metadata(model, &bytes);
  EXPECT_THAT(std::string(metadata, bytes), HasSubstr("\"tiny\""));
  EXPECT_EQ(std::strlen(metadata), bytes);
  EXPECT_STREQ(hone_version(), "0.1.0");
}

TEST_F(ModelTest, EveryNumberOfThreadsGivesTheSameResult) {
  const LoadedModel model(Path(), 1);
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  for (const int threads : {1, 2, 3, 5}) {
    ASSERT_EQ(hone_set_threads(model, threads), HONE_OK) << hone_error();
    EXPECT_EQ(hone_threads(model), threads);
    ASSERT_EQ(hone_run(model), HONE_OK);
    EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput())) << threads;
  }
  ASSERT_EQ(hone_set_threads(model, 0), HONE_OK);
  EXPECT_GE(hone_threads(model), 1);
}

TEST_F(ModelTest, RefusesANegativeNumberOfThreads) {
  const LoadedModel model(Path(), 2);
  EXPECT_EQ(hone_set_threads(model, -1), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("-1 threads"));
  EXPECT_EQ(hone_threads(model), 2);
  const HoneLoadOptions options = {sizeof(HoneLoadOptions), -7, 0};
  HoneModel* other = nullptr;
  EXPECT_EQ(hone_load(Path().c_str(), &options, &other), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(other, nullptr);
}

TEST_F(ModelTest, ModelsOnSeveralThreadsDoNotDisturbOneAnother) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const LoadedModel model(Path(), 2);
      ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
      for (int i = 0; i < 50; ++i) ASSERT_EQ(hone_run(model), HONE_OK);
      EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ModelTest, AnInputKeepsItsValueFromRunToRun) {
  const LoadedModel model(Path());
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
}

TEST_F(ModelTest, AnInputCanBeFilledInPlace) {
  const LoadedModel model(Path());
  DLTensor view;
  ASSERT_EQ(hone_get_input(model, 0, &view), HONE_OK);
  std::memcpy(view.data, x_.data(), x_.size() * sizeof(float));
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
}

TEST_F(ModelTest, RefusesToRunBeforeAnInputIsSet) {
  const LoadedModel model(Path());
  EXPECT_EQ(hone_run(model), HONE_INVALID_ARGUMENT);
  EXPECT_STREQ(hone_error(), "input 'x' has never been set");
  int64_t times[2];
  EXPECT_EQ(hone_run_profiled(model, times, 2), HONE_INVALID_ARGUMENT);
}

TEST_F(ModelTest, AnInputWithADefaultNeedNotBeSet) {
  package::PackageContents contents = TinyContents(CompileTinyKernels());
  package::PackageProgram& program = contents.programs[0];
  program.tensors.push_back({.name = "",
                             .dtype = package::DType::kFloat32,
                             .shape = {kRows, kColumns},
                             .kind = package::TensorKind::kConstant,
                             .data = {reinterpret_cast<const uint8_t*>(x_.data()), x_.size() * sizeof(float)}});
  program.defaults = {{static_cast<package::TensorId>(program.tensors.size() - 1), program.inputs[0]}};
  const std::string path = *folder_ / "default.hone";
  WriteTinyPackage(path, contents);
  EXPECT_EQ(ReadWholeFile(path)[8], package::kSizesFormatVersion);
  EXPECT_EQ(ReadWholeFile(Path())[8], package::kPlainFormatVersion) << "older runtimes read it";
  const LoadedModel model(path);
  EXPECT_EQ(hone_input_has_default(model, 0), 1);
  EXPECT_EQ(hone_input_has_default(model, 1), 0);
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  const std::vector<float> zeros(x_.size(), 0);
  const FloatTensor other{zeros.data(), {kRows, kColumns}};
  ASSERT_EQ(hone_set_input(model, 0, &other.tensor), HONE_OK);
  ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_THAT(OutputOf(model, 1), ElementsAreArray(zeros));
  const LoadedModel plain(Path());
  EXPECT_EQ(hone_input_has_default(plain, 0), 0);
}

TEST_F(ModelTest, BoundMemoryIsUsedWithoutACopy) {
  const LoadedModel model(Path());
  const AlignedFloats x(32), y(32);
  std::copy(x_.begin(), x_.end(), x.data);
  const FloatTensor bound_x(x.data, {kRows, kColumns}), bound_y(y.data, {kRows, kColumns});
  ASSERT_EQ(hone_bind_input(model, 0, &bound_x.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_bind_output(model, 0, &bound_y.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_THAT(std::vector<float>(y.data, y.data + 32), ElementsAreArray(TinyOutput()));
  x.data[0] += 100;
  ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_EQ(y.data[0], TinyOutput()[0] + 200);
  DLTensor view;
  ASSERT_EQ(hone_get_output(model, 0, &view), HONE_OK);
  EXPECT_EQ(view.data, y.data);
}

TEST_F(ModelTest, SettingAnInputEndsItsBinding) {
  const LoadedModel model(Path());
  const AlignedFloats x(32);
  const FloatTensor bound(x.data, {kRows, kColumns});
  ASSERT_EQ(hone_bind_input(model, 0, &bound.tensor), HONE_OK);
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  EXPECT_EQ(x.data[0], -1) << "the bound memory was written";
}

TEST_F(ModelTest, AViewOfAnInputIsOfTheMemoryThatRunsRead) {
  const LoadedModel model(Path());
  const AlignedFloats x(32);
  const FloatTensor bound(x.data, {kRows, kColumns});
  ASSERT_EQ(hone_bind_input(model, 0, &bound.tensor), HONE_OK);
  DLTensor view;
  ASSERT_EQ(hone_get_input(model, 0, &view), HONE_OK);
  EXPECT_EQ(view.data, x.data);
  std::copy(x_.begin(), x_.end(), x.data);
  ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  ASSERT_EQ(hone_get_input(model, 0, &view), HONE_OK);
  EXPECT_NE(view.data, x.data);
}

// A recurrent model exchanges the memory of its old and its new state in this way.
TEST_F(ModelTest, PortsExchangeTheirMemory) {
  const LoadedModel model(Path());
  const AlignedFloats a(32), b(32);
  const FloatTensor in_a(a.data, {kRows, kColumns}), in_b(b.data, {kRows, kColumns});
  std::copy(x_.begin(), x_.end(), a.data);
  ASSERT_EQ(hone_bind_input(model, 0, &in_a.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_bind_output(model, 0, &in_b.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_EQ(b.data[3], TinyOutput()[3]);
  ASSERT_EQ(hone_bind_input(model, 0, &in_b.tensor), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model), HONE_INVALID_ARGUMENT) << "the output is still there";
  ASSERT_EQ(hone_bind_output(model, 0, &in_a.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_EQ(a.data[3], 2 * (TinyOutput()[3] + kBias[3]));
  EXPECT_EQ(b.data[3], TinyOutput()[3]);
}

TEST_F(ModelTest, ANullTensorGivesBoundMemoryBack) {
  const LoadedModel model(Path());
  const AlignedFloats x(32), y(32);
  std::copy(x_.begin(), x_.end(), x.data);
  const FloatTensor bound_x(x.data, {kRows, kColumns}), bound_y(y.data, {kRows, kColumns});
  ASSERT_EQ(hone_bind_input(model, 0, &bound_x.tensor), HONE_OK);
  ASSERT_EQ(hone_bind_output(model, 0, &bound_y.tensor), HONE_OK);
  ASSERT_EQ(hone_bind_output(model, 0, nullptr), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  EXPECT_EQ(y.data[0], -1) << "memory that was given back was written";
  ASSERT_EQ(hone_bind_input(model, 0, nullptr), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model), HONE_INVALID_ARGUMENT);
  EXPECT_STREQ(hone_error(), "input 'x' has never been set") << "of the model's own buffer that is so";
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  ASSERT_EQ(hone_bind_input(model, 0, &bound_x.tensor), HONE_OK);
  ASSERT_EQ(hone_bind_input(model, 0, nullptr), HONE_OK);
  x.data[0] += 100;
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  EXPECT_EQ(hone_bind_input(model, 1, nullptr), HONE_INVALID_ARGUMENT);
}

TEST_F(ModelTest, TakesPinnedMemoryAsItsOwn) {
  const LoadedModel model(Path());
  FloatTensor pinned(x_.data(), {kRows, kColumns});
  pinned.tensor.device = {kDLCUDAHost, 0};
  ASSERT_EQ(hone_set_input(model, 0, &pinned.tensor), HONE_OK) << hone_error();
  const AlignedFloats y(32);
  FloatTensor bound(y.data, {kRows, kColumns});
  bound.tensor.device = {kDLCUDAHost, 0};
  ASSERT_EQ(hone_bind_output(model, 0, &bound.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(std::vector<float>(y.data, y.data + 32), ElementsAreArray(TinyOutput()));
}

TEST_F(ModelTest, RefusesAnOutputInTheModelsOwnBufferOfAnInput) {
  const LoadedModel model(Path());
  DLTensor own;
  ASSERT_EQ(hone_get_input(model, 0, &own), HONE_OK);
  const AlignedFloats x(32);
  const FloatTensor bound(x.data, {kRows, kColumns});
  ASSERT_EQ(hone_bind_input(model, 0, &bound.tensor), HONE_OK);
  ASSERT_EQ(hone_bind_output(model, 0, &own), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model), HONE_INVALID_ARGUMENT) << "hone_set_input would use it again";
  EXPECT_STREQ(hone_error(), "output 'y' overlaps the memory of 'x'; bind other memory to one of them");
  ASSERT_EQ(hone_bind_output(model, 0, nullptr), HONE_OK);
  EXPECT_EQ(hone_bind_input(model, 0, &own), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model), HONE_OK) << hone_error();
}

TEST_F(ModelTest, RefusesToBindWhatAKernelCannotUse) {
  const LoadedModel model(Path());
  const AlignedFloats memory(128);
  FloatTensor unaligned(memory.data + 1, {kRows, kColumns});
  EXPECT_EQ(hone_bind_input(model, 0, &unaligned.tensor), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("multiple of 64"));

  int64_t strides[] = {16, 1};
  FloatTensor gaps(memory.data, {kRows, kColumns});
  gaps.tensor.strides = strides;
  EXPECT_EQ(hone_bind_input(model, 0, &gaps.tensor), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("gaps"));

  FloatTensor x(memory.data, {kRows, kColumns}), y(memory.data + 16, {kRows, kColumns});
  ASSERT_EQ(hone_bind_input(model, 0, &x.tensor), HONE_OK);
  ASSERT_EQ(hone_bind_output(model, 0, &y.tensor), HONE_OK);
  int64_t times[2];
  EXPECT_EQ(hone_run_profiled(model, times, 2), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("'y' overlaps the memory of 'x'"));
}

TEST_F(ModelTest, AnEmptyOutputMayLieAnywhere) {
  package::PackageContents contents = TinyContents(CompileTinyKernels());
  package::PackageProgram& program = contents.programs[0];
  program.outputs.push_back(static_cast<package::TensorId>(program.tensors.size()));
  program.tensors.push_back(
      {.name = "none", .dtype = package::DType::kFloat32, .shape = {0}, .kind = package::TensorKind::kOutput});
  const std::string path = *folder_ / "empty_output.hone";
  WriteTinyPackage(path, contents);
  const LoadedModel model(path);
  const AlignedFloats memory(32);
  const FloatTensor x(memory.data, {kRows, kColumns}), none(memory.data + 16, {0});
  ASSERT_EQ(hone_bind_input(model, 0, &x.tensor), HONE_OK) << hone_error();
  EXPECT_EQ(hone_bind_output(model, 3, &none.tensor), HONE_OK) << hone_error();
  const AlignedFloats other(32);
  const FloatTensor y(other.data, {kRows, kColumns}), inside(other.data + 16, {0});
  ASSERT_EQ(hone_bind_output(model, 3, &inside.tensor), HONE_OK) << hone_error();
  EXPECT_EQ(hone_bind_output(model, 0, &y.tensor), HONE_OK) << hone_error();
  std::copy(x_.begin(), x_.end(), memory.data);
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
}

TEST_F(ModelTest, TakesStridedTensorsByCopy) {
  const LoadedModel model(Path());
  std::vector<float> transposed(x_.size());
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) transposed[c * kRows + r] = x_[r * kColumns + c];
  }
  int64_t strides[] = {1, kRows};
  FloatTensor tensor(transposed.data(), {kRows, kColumns});
  tensor.tensor.strides = strides;
  ASSERT_EQ(hone_set_input(model, 0, &tensor.tensor), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
}

TEST_F(ModelTest, TakesAStridedViewOfItsOwnInput) {
  const LoadedModel model(Path());
  DLTensor view;
  ASSERT_EQ(hone_get_input(model, 0, &view), HONE_OK);
  std::reverse_copy(x_.begin(), x_.end(), static_cast<float*>(view.data));
  int64_t backwards[] = {-kColumns, -1};
  view.strides = backwards;
  view.byte_offset = (x_.size() - 1) * sizeof(float);
  ASSERT_EQ(hone_set_input(model, 0, &view), HONE_OK) << hone_error();
  ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
}

TEST_F(ModelTest, CheckPortsNamesTheFirstDifference) {
  const LoadedModel model(Path());
  const int64_t shape[] = {kRows, kColumns}, bias_shape[] = {kColumns};
  const HonePort x = {"x", {kDLFloat, 32, 1}, 2, shape, 128};
  std::vector<HonePort> outputs = {{"y", {kDLFloat, 32, 1}, 2, shape, 128},
                                   {"x_out", {kDLFloat, 32, 1}, 2, shape, 128},
                                   {"bias_out", {kDLFloat, 32, 1}, 1, bias_shape, 32}};
  const std::string advice = "; compile the package and the program's header of one model, together";
  EXPECT_EQ(hone_check_ports(model, &x, 1, outputs.data(), 3), HONE_OK) << hone_error();
  EXPECT_EQ(hone_check_ports(model, nullptr, 0, outputs.data(), 3), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_error(), "the number of inputs of the package is 1, this program is made for 0" + advice);
  EXPECT_EQ(hone_check_ports(model, nullptr, 1, outputs.data(), 3), HONE_INVALID_ARGUMENT);
  outputs[2].ndim = 0;
  EXPECT_EQ(hone_check_ports(model, &x, 1, outputs.data(), 3), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_error(),
            "output 2 of the package is 'bias_out' f32 [8], this program is made for 'bias_out' f32 []" + advice);
  outputs[0].dtype = {kDLInt, 32, 1};
  EXPECT_EQ(hone_check_ports(model, &x, 1, outputs.data(), 3), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("'y' f32 [4, 8], this program is made for 'y' i32 [4, 8]"));
  HonePort nameless = x, shapeless = x, negative = x;
  nameless.name = nullptr;
  shapeless.shape = nullptr;
  negative.ndim = -1;
  for (const HonePort* port : {&nameless, &shapeless, &negative}) {
    EXPECT_EQ(hone_check_ports(model, port, 1, outputs.data(), 3), HONE_INVALID_ARGUMENT);
    EXPECT_STREQ(hone_error(), "input 0 of those to compare with has no name or no shape");
  }
}

TEST_F(ModelTest, ACancelledThreadEndsItsCallsFirst) {
  std::string path = Path();
  pthread_t thread;
  const auto calls = [](void* path) -> void* {
    pthread_cancel(pthread_self());
    HoneModel* model = nullptr;
    const HoneLoadOptions options = {sizeof(HoneLoadOptions), 3, 0};
    if (hone_load(static_cast<const char*>(path), &options, &model) != HONE_OK) return nullptr;
    if (hone_set_threads(model, 2) != HONE_OK) return nullptr;
    hone_free(model);
    return path;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, calls, path.data()), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, path.data()) << "no call is a cancellation point";
}

TEST_F(ModelTest, AForkedChildHasItsModelsWithoutTheWorkers) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "under its sanitizer a forked child starts no threads";
#endif
  const LoadedModel model(Path(), 4), other(Path(), 4);
  for (HoneModel* each : {static_cast<HoneModel*>(model), static_cast<HoneModel*>(other)}) {
    ASSERT_EQ(hone_set_input(each, 0, &input_.tensor), HONE_OK);
    ASSERT_EQ(hone_run(each), HONE_OK) << hone_error();
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // ends a child that waits for the parent's workers, which it does not have
    const auto runs = [&](int threads) {
      return hone_threads(model) == threads && hone_run(model) == HONE_OK && OutputOf(model, 0) == TinyOutput();
    };
    const bool alone = runs(1);
    const bool with_workers = hone_set_threads(model, 4) == HONE_OK && runs(4);
    hone_free(model);
    hone_free(other);
    _exit(alone && with_workers ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(hone_run(model), HONE_OK) << hone_error();
  EXPECT_EQ(hone_threads(model), 4);
}

TEST_F(ModelTest, RefusesTensorsOfAnotherTypeShapeOrPlace) {
  const LoadedModel model(Path());
  FloatTensor wrong(x_.data(), {kColumns, kRows});
  EXPECT_EQ(hone_set_input(model, 0, &wrong.tensor), HONE_INVALID_ARGUMENT);
  EXPECT_STREQ(hone_error(), "tensor for 'x' has shape [8, 4], the model wants [4, 8]");
  wrong = FloatTensor(x_.data(), {kRows, kColumns});
  wrong.tensor.dtype = {kDLInt, 32, 1};
  EXPECT_EQ(hone_set_input(model, 0, &wrong.tensor), HONE_INVALID_ARGUMENT);
  EXPECT_STREQ(hone_error(), "tensor for 'x' has type i32, the model wants f32");
  wrong.tensor.dtype = {kDLComplex, 64, 1};
  EXPECT_EQ(hone_set_input(model, 0, &wrong.tensor), HONE_INVALID_ARGUMENT);
  wrong.tensor.dtype = {kDLFloat, 32, 1};
  wrong.tensor.device = {kDLCUDA, 0};
  const std::string elsewhere = "tensor for 'x' is on CUDA device 0; the program that runs takes CPU memory alone";
  EXPECT_EQ(hone_set_input(model, 0, &wrong.tensor), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_error(), elsewhere);
  EXPECT_EQ(hone_bind_input(model, 0, &wrong.tensor), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_error(), elsewhere);
  wrong.tensor.device = {kDLCPU, 0};
  wrong.tensor.data = nullptr;
  EXPECT_EQ(hone_set_input(model, 0, &wrong.tensor), HONE_INVALID_ARGUMENT);
  wrong.tensor.ndim = -1;
  EXPECT_EQ(hone_set_input(model, 0, &wrong.tensor), HONE_INVALID_ARGUMENT);
}

TEST_F(ModelTest, RefusesIndicesOutOfRangeAndNullPointers) {
  const LoadedModel model(Path());
  HonePort port;
  DLTensor view;
  EXPECT_EQ(hone_input(model, 1, &port), HONE_INVALID_ARGUMENT);
  EXPECT_STREQ(hone_error(), "no input 1: the model has 1");
  EXPECT_EQ(hone_output(model, 3, &port), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_set_input(model, 1, &input_.tensor), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_bind_input(model, 1, &input_.tensor), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_bind_output(model, 3, &input_.tensor), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_get_input(model, 1, &view), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_get_output(model, 3, &view), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_set_input(model, 0, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_load(nullptr, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_call_symbol(model, 2), nullptr);
  hone_free(nullptr);
}

TEST_F(ModelTest, ProfilesEveryCall) {
  const LoadedModel model(Path());
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
  ASSERT_EQ(hone_call_count(model), 2u);
  EXPECT_STREQ(hone_call_symbol(model, 0), "add_bias");
  EXPECT_STREQ(hone_call_symbol(model, 1), "scale");
  int64_t times[2] = {-1, -1};
  ASSERT_EQ(hone_run_profiled(model, times, 2), HONE_OK) << hone_error();
  EXPECT_GE(times[0], 0);
  EXPECT_GE(times[1], 0);
  EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  EXPECT_THAT(OutputOf(model, 1), ElementsAreArray(x_));
  EXPECT_EQ(hone_run_profiled(model, times, 1), HONE_INVALID_ARGUMENT);
  EXPECT_STREQ(hone_error(), "room for 1 times, the model has 2 calls");
}

TEST_F(ModelTest, TwoPackagesKeepTheirOwnCode) {
  const std::string other_path = *folder_ / "other.hone";
  WriteTinyPackage(other_path, TinyContents(CompileTinyKernels("-DSCALE=3.0f")));
  for (const bool other_first : {false, true}) {
    const LoadedModel first(other_first ? other_path : Path());
    const LoadedModel second(other_first ? Path() : other_path);
    for (HoneModel* model : {static_cast<HoneModel*>(first), static_cast<HoneModel*>(second)}) {
      ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
      ASSERT_EQ(hone_run(model), HONE_OK);
      const bool is_other = (model == first) == other_first;
      EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput(is_other ? 3 : 2)));
    }
  }
}

TEST_F(ModelTest, LoadsAgainAfterFree) {
  for (int i = 0; i < 5; ++i) {
    const LoadedModel model(Path());
    ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK);
    ASSERT_EQ(hone_run(model), HONE_OK);
    EXPECT_THAT(OutputOf(model, 0), ElementsAreArray(TinyOutput()));
  }
}

TEST_F(ModelTest, LoadOptionsAreChecked) {
  HoneModel* model = nullptr;
  HoneLoadOptions options = {0, 1, 0};
  EXPECT_EQ(hone_load(Path().c_str(), &options, &model), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("struct_bytes"));
  options = {sizeof(HoneLoadOptions), 1, 1u << 20};
  EXPECT_EQ(hone_load(Path().c_str(), &options, &model), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("unknown flag"));
  // A program that was compiled before the field `device`.
  options = {12, 1, 0, reinterpret_cast<const char*>(1)};
  ASSERT_EQ(hone_load(Path().c_str(), &options, &model), HONE_OK) << hone_error();
  hone_free(model);
  ASSERT_EQ(hone_load(Path().c_str(), nullptr, &model), HONE_OK) << hone_error();
  hone_free(model);
}

TEST_F(ModelTest, ASharedLibraryServesACProgram) {
  const CommandResult result = RunCommand(std::string(HONE_C_PROGRAM) + " " + Path());
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output, "y[0] = 4\n");
}

// Kernels find libm's functions even if the host program does not link libm and loads the runtime with RTLD_LOCAL.
TEST_F(ModelTest, AHostThatLoadsTheRuntimeWhenItRunsNeedsNoMathLibrary) {
  const std::string path = *folder_ / "cosine.hone";
  WriteTinyPackage(path, TinyContents(CompileTinyKernels("-include math.h -fno-builtin '-DSCALE=(3 * cosf(0))'")));
  const CommandResult result = RunCommand(HONE_C_PLUGIN_HOST " " HONE_SHARED_RUNTIME " " + path);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output, "y[0] = 6\n");
}

TEST_F(ModelTest, TheSharedLibraryExportsItsInterfaceAlone) {
  const CommandResult exported = RunCommand("nm -D --defined-only --format=posix " HONE_SHARED_RUNTIME);
  ASSERT_EQ(exported.exit_code, 0) << exported.output;
  EXPECT_THAT(exported.output, HasSubstr("hone_load "));
  std::istringstream lines(exported.output);
  for (std::string line; std::getline(lines, line);) EXPECT_THAT(line, StartsWith("hone_"));
}

TEST_F(ModelTest, HoneRunReportsSkippedPrograms) {
  package::PackageContents contents = TinyContents(CompileTinyKernels());
  contents.programs[0].units[0].cpu_features = {"quantum"};
  AddProgram(contents, TinyProgram(CompileTinyKernels()), "cpu -mcpu=plain");
  const std::string path = *folder_ / "several.hone", in = *folder_ / "several.bin";
  WriteTinyPackage(path, contents);
  WriteWholeFile(in, std::string(x_.size() * sizeof(float), '\0'));
  const CommandResult result = RunCommand(std::string(HONE_RUN_PROGRAM) + " " + path + " --raw-in x=" + in);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, StartsWith("hone-run: passed over: program for 'cpu': the code needs quantum"));
  EXPECT_THAT(result.output, HasSubstr("target cpu -mcpu=plain\n"));
}

TEST_F(ModelTest, HoneRunReadsAndWritesRawFiles) {
  const std::string in = *folder_ / "x.bin", out = *folder_ / "y.bin";
  WriteWholeFile(in, std::string(reinterpret_cast<const char*>(x_.data()), x_.size() * sizeof(float)));
  const std::string run = std::string(HONE_RUN_PROGRAM) + " " + Path();
  const CommandResult result =
      RunCommand(run + " --raw-in x=" + in + " --raw-out y=" + out + " --threads 2 --repeat 3");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, StartsWith("output y f32["));
  EXPECT_THAT(result.output, HasSubstr("]\nruns 3, threads 2"));
  const std::string bytes = ReadWholeFile(out);
  std::vector<float> y(bytes.size() / sizeof(float));
  std::memcpy(y.data(), bytes.data(), bytes.size());
  EXPECT_THAT(y, ElementsAreArray(TinyOutput()));
}

TEST_F(ModelTest, HoneRunTakesShapesOfOpenInputs) {
  package::PackageContents contents = TinyContents(CompileTinyKernels());
  OpenRows(contents.programs[0]);
  const std::string package = *folder_ / "open.hone", in = *folder_ / "two_rows.bin", out = *folder_ / "two_rows.out";
  WriteTinyPackage(package, contents);
  const size_t bytes = 2 * kColumns * sizeof(float);
  WriteWholeFile(in, std::string(reinterpret_cast<const char*>(x_.data()), bytes));
  const CommandResult result = RunCommand(std::string(HONE_RUN_PROGRAM) + " " + package + " --raw-in x=" + in +
                                          " --shape x=2,8 --raw-out y=" + out);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const std::vector<float> y = TinyOutput();
  EXPECT_EQ(ReadWholeFile(out), std::string(reinterpret_cast<const char*>(y.data()), bytes));
}

TEST_F(ModelTest, HoneRunExplainsWrongUse) {
  const std::string run = std::string(HONE_RUN_PROGRAM) + " ";
  EXPECT_EQ(RunCommand(run + "--version").output, std::string("hone-run ") + hone_version() + "\n");
  EXPECT_EQ(RunCommand(run + "--help").exit_code, 0);
  const std::string small = *folder_ / "small.bin";
  WriteWholeFile(small, "abc");
  const std::pair<std::string, std::string> failures[] = {
      {Path(), "input 'x' has never been set"},
      {Path() + " --raw-in z=" + small, "no input 'z'"},
      {Path() + " --shape z=1", "no input 'z'"},
      {Path() + " --shape x=3,8", "input 'x' cannot be resized to [3, 8], the model wants [4, 8]"},
      {Path() + " --raw-in x=" + small, "has 3 bytes, input 'x' has 128"},
      {Path() + " --raw-in x=/nowhere/x.bin", "cannot open"},
      {Path() + " --raw-in x=/", "'/' is a folder; give a file with the bytes of input 'x'"},
      {Path() + " --raw-in x=/dev/null", "'/dev/null' is no regular file"},
      {"/nowhere/p.hone", "cannot open package"},
  };
  for (const auto& [arguments, message] : failures) {
    const CommandResult result = RunCommand(run + arguments);
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_THAT(result.output, HasSubstr(message)) << arguments;
  }
  for (const std::string& arguments :
       {std::string(), Path() + " --repeat 0", Path() + " --threads 4097", Path() + " --raw-in x", Path() + " --bad 1",
        Path() + " --shape x", Path() + " --shape x=4,", Path() + " --shape x=4,x", Path() + " --shape =4",
        Path() + " --threads", Path() + " " + Path()}) {
    const CommandResult result = RunCommand(run + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.output, HasSubstr("usage:")) << arguments;
  }
}

TEST_F(ModelTest, HoneRunWritesOverNothingThatItReads) {
  const std::string in = *folder_ / "in.bin", other_name = *folder_ / "also_in.bin", package = *folder_ / "mine.hone";
  const std::string x(reinterpret_cast<const char*>(x_.data()), x_.size() * sizeof(float));
  WriteWholeFile(in, x);
  std::filesystem::create_hard_link(in, other_name);
  std::filesystem::copy_file(Path(), package);
  for (const std::string& out : {in, other_name, package}) {
    const CommandResult result =
        RunCommand(std::string(HONE_RUN_PROGRAM) + " " + package + " --raw-in x=" + in + " --raw-out y=" + out);
    EXPECT_EQ(result.exit_code, 2) << out;
    EXPECT_THAT(result.output, HasSubstr("--raw-out y=" + out + " would overwrite what is read")) << out;
  }
  EXPECT_EQ(ReadWholeFile(in), x);
  EXPECT_EQ(ReadWholeFile(package), ReadWholeFile(Path()));
}

TEST_F(ModelTest, HoneRunWritesAnOutputWholeOrNotAtAll) {
  const std::filesystem::path outputs = *folder_ / "outputs";
  std::filesystem::create_directory(outputs);
  const std::string in = *folder_ / "whole.bin", out = outputs / "y.bin", old = outputs / "old",
                    pipe = outputs / "pipe";
  WriteWholeFile(in, std::string(reinterpret_cast<const char*>(x_.data()), x_.size() * sizeof(float)));
  WriteWholeFile(out, "of before");
  const std::string run = std::string(HONE_RUN_PROGRAM) + " " + Path() + " --raw-in x=" + in + " --raw-out y=";
  std::filesystem::create_hard_link(out, old);
  const CommandResult good = RunCommand(run + out);
  EXPECT_EQ(good.exit_code, 0) << good.output;
  const std::string y = ReadWholeFile(out);
  EXPECT_EQ(y.size(), TinyOutput().size() * sizeof(float));
  EXPECT_EQ(ReadWholeFile(old), "of before") << "a full disk would have left half an output";
  const std::string folder = outputs / "folder";
  std::filesystem::create_directory(folder);
  const CommandResult bad = RunCommand(run + folder);
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_EQ(bad.output, "hone-run: cannot write '" + folder + "': Is a directory\n");
  EXPECT_EQ(RunCommand("ls -A " + outputs.string()).output, "folder\nold\ny.bin\n") << "something is left beside it";
  const CommandResult piped =
      RunCommand("(mkfifo " + pipe + "; timeout 60 cat " + pipe + " > " + out + " & " + run + pipe + "; wait)");
  EXPECT_EQ(ReadWholeFile(out), y) << piped.output;
}

TEST_F(ModelTest, HoneRunWritesEachOutputIntoAFileOfItsOwn) {
  const std::string out = *folder_ / "same.bin", also = *folder_ / "./same.bin";
  const CommandResult result =
      RunCommand(std::string(HONE_RUN_PROGRAM) + " " + Path() + " --raw-out y=" + out + " --raw-out x_out=" + also);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output,
            "hone-run: --raw-out x_out=" + also + " would overwrite output 'y'; give each output a file of its own\n");
}

TEST_F(ModelTest, HoneRunFailsWhereItCannotPrint) {
  const std::string in = *folder_ / "printed.bin";
  WriteWholeFile(in, std::string(x_.size() * sizeof(float), '\0'));
  for (const std::string& arguments : {Path() + " --raw-in x=" + in, std::string("--help"), std::string("--version")}) {
    const CommandResult result = RunCommand("(" + std::string(HONE_RUN_PROGRAM) + " " + arguments + " > /dev/full)");
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_EQ(result.output, "hone-run: cannot write to standard output: No space left on device\n") << arguments;
  }
}

}  // namespace
}  // namespace hone::tests
