// SPDX-License-Identifier: Apache-2.0
// The model that a command sends with a job, and the packages that a tuner makes of it: both must have the same
// kernels, whatever options the command had.
#include "cli/model_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/resource_limit.h"
#include "base/run_limits.h"
#include "base/temporary_folder.h"
#include "cli/submission.h"
#include "deploy/run/npy.h"
#include "tests/unit/graph/model_builder.h"
#include "tuner/child_process.h"
#include "tuner/model_compiler.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kScaled[] = R"(
operator "com.example" "Scaled"
workload "scaled"
size n in [0, 1000]
size m in [0, 1000]
input x: f32[n,m]
y: f32[n,m] over i:n, j:m = x[i, j] * 3.0f32
output y
)";

class ModelSourceTest : public testing::Test {
 protected:
  std::string File(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(File(name)).parent_path());
    std::ofstream(File(name), std::ios::binary) << bytes;
  }
  // The job of a command with these options.
  v1::JobSpec Job() {
    options_.models = {File("net.onnx")};
    SearchOptions search;
    search.trials = 1;
    const auto specs = MakeJobSpecs(options_, search, *PartsOf(options_, search, {}));
    EXPECT_TRUE(specs.ok()) << specs.status();
    return specs.ok() ? specs->front() : v1::JobSpec();
  }
  // Compiles the job's model as a tuner does that got its files from the tracker.
  absl::Status Compile(const v1::JobSpec& spec) {
    const fs::path place = File("tuner");
    Put(spec, place);
    const absl::Status status = tuner::CompilePackages(place, nullptr);
    EXPECT_EQ(status.ok(), fs::exists(place / tuner::kUntunedPackage) && fs::exists(place / tuner::kTunedPackage));
    EXPECT_FALSE(fs::exists(place / tuner::kCompilingFile));
    return status;
  }
  static void Put(const v1::JobSpec& spec, const fs::path& place) {
    fs::remove_all(place);
    for (const v1::ModelFile& file : spec.model().files()) {
      const fs::path path = place / tuner::kModelFolder / file.path();
      fs::create_directories(path.parent_path());
      fs::copy_file(file.file().name(), path);
    }
    v1::Job job;
    *job.mutable_spec() = spec;
    for (const v1::WorkloadSpec& workload : spec.workloads()) {
      job.mutable_progress()->add_workloads()->set_digest(workload.digest());
    }
    std::ofstream(place / tuner::kJobFile, std::ios::binary) << job.SerializeAsString();
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  ModelOptions options_;
};

TEST_F(ModelSourceTest, ExternalDataKeepsItsPlace) {
  const std::vector<float> weights = {1, 2, 3};
  Write("parts/weights.bin", std::string(reinterpret_cast<const char*>(weights.data()), 12));
  graph::Message tensor;
  tensor.Int(1, 3).Int(2, graph::kFloat).Text(8, "w").Int(14, 1);
  for (const auto& [key, value] : {std::pair("location", "./parts/weights.bin"), std::pair("length", "12")}) {
    tensor.Text(13, graph::Message().Text(1, key).Text(2, value).bytes());
  }
  graph::GraphBuilder b;
  b.Input("x", {3}).Initializer(tensor.bytes()).Node("Mul", {"x", "w"}, {"y"}).Output("y");
  Write("net.onnx", b.Model());
  const v1::JobSpec spec = Job();
  ASSERT_EQ(spec.model().files_size(), 2);
  EXPECT_EQ(spec.model().files(1).path(), "parts/weights.bin");
  EXPECT_TRUE(Compile(spec).ok()) << Compile(spec);
}

TEST_F(ModelSourceTest, OptionsOfTheImportAreKept) {
  graph::GraphBuilder b;
  b.Input("x", graph::Dims(std::vector<graph::Dim>{"n", 3})).Input("repeats", {2}, graph::kInt64).Input("shift", {3});
  b.Node("Tile", {"x", "repeats"}, {"t"}).Node("Scaled", {"t"}, {"s"}, {}, "com.example");
  b.Node("Exp", {"s"}, {"e"}).Node("Add", {"x", "shift"}, {"z"}).Output("e").Output("z");
  Write("net.onnx", b.Model());
  Write("scaled.txt", kScaled);
  const std::vector<int64_t> dims = {3};
  const std::vector<float> shift = {1, 2, 3};
  Write("shift.npy",
        run::NpyPrefix(package::DType::kFloat32, dims) + std::string(reinterpret_cast<const char*>(shift.data()), 12));
  options_.operators = {File("scaled.txt")};
  options_.bindings = {"repeats=2,1", "shift=" + File("shift.npy")};
  options_.shapes = {"x=1..16,3", "x=32,3"};
  const v1::JobSpec spec = Job();
  EXPECT_EQ(spec.model().programs_size(), 2);
  EXPECT_EQ(spec.model().files_size(), 3);
  EXPECT_TRUE(Compile(spec).ok()) << Compile(spec);
  v1::JobSpec other = spec;
  other.mutable_model()->mutable_programs(0)->mutable_inputs(0)->mutable_dimensions(0)->set_max(8);
  EXPECT_THAT(std::string(Compile(other).message()), HasSubstr("other kernels of the model")) << "other sizes";
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The address space that this process has is all that the child gets, so the packages' weights do not fit.
TEST_F(ModelSourceTest, ACompilerWithoutMemorySaysThatAndEnds) {
  constexpr int kWeights = 16 << 20;
  graph::GraphBuilder b;
  b.Input("x", {kWeights}).Floats("w", {kWeights}, std::vector<float>(kWeights, 1.5f));
  b.Node("Mul", {"x", "w"}, {"y"}).Output("y");
  Write("net.onnx", b.Model());
  const fs::path place = File("tuner");
  Put(Job(), place);
  const pid_t child = fork();
  if (child == 0) {
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    LimitMemory(static_cast<uint64_t>(pages * sysconf(_SC_PAGESIZE) + kWeights));
    _exit(tuner::CompileModelIn(place));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << tuner::DescribeEnd(status);
  EXPECT_EQ(WEXITSTATUS(status), tuner::kOutOfMemoryCode);
}
#endif

TEST_F(ModelSourceTest, OpenDimensionsGetTheRangesOfTheCommand) {
  graph::GraphBuilder b;
  b.Input("x", graph::Dims(std::vector<graph::Dim>{"n", "m"})).Node("Softmax", {"x"}, {"y"}).Output("y");
  Write("net.onnx", b.Model());
  EXPECT_TRUE(Compile(Job()).ok());
}

TEST_F(ModelSourceTest, APathOutOfTheFolderIsRefusedByTheTuner) {
  graph::GraphBuilder b;
  b.Input("x", {3}).Node("Exp", {"x"}, {"y"}).Output("y");
  Write("net.onnx", b.Model());
  v1::JobSpec spec = Job();
  spec.mutable_model()->add_operators("../../../etc/passwd");
  EXPECT_THAT(std::string(Compile(spec).message()), HasSubstr("outside its folder"));
}

// Nothing is sent, so no tracker is needed.
TEST_F(ModelSourceTest, AModelBeyondALimitIsNotSentAndTheJobStays) {
  const auto channel = grpc::CreateChannel("unix:/nowhere", grpc::InsecureChannelCredentials());
  v1::JobSpec many, long_names;
  many.set_name("many.onnx");
  for (int i = 0; i <= kModelFilesMax; ++i) many.mutable_model()->add_files()->set_path(std::to_string(i));
  long_names.set_name("long_names.onnx");
  for (int i = 0; i < 9000; ++i) long_names.mutable_model()->add_files()->set_path(std::string(1000, 'x'));
  std::vector<v1::JobSpec> specs = {many, long_names};
  testing::internal::CaptureStderr();
  const absl::Status sent = SendModels(channel, specs, {});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("will not be measured: many.onnx consists of 10001 files; a tracker takes up to 10000"),
                    HasSubstr("the description of long_names.onnx has 9.")));
  EXPECT_TRUE(sent.ok()) << sent;
  for (const v1::JobSpec& spec : specs) EXPECT_FALSE(spec.has_model()) << spec.name();
}

TEST_F(ModelSourceTest, NothingIsSentAfterTheTimeToEnd) {
  const auto channel = grpc::CreateChannel("unix:/nowhere", grpc::InsecureChannelCredentials());
  Write("net.onnx", "a model");
  std::vector<v1::JobSpec> specs(1);
  specs[0].mutable_until()->set_seconds(absl::ToUnixSeconds(absl::Now()) - 1);
  specs[0].mutable_model()->add_files()->mutable_file()->set_name(File("net.onnx"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(SendModels(channel, specs, {})));
}

TEST_F(ModelSourceTest, WithoutConfirmationThereIsNoModel) {
  graph::GraphBuilder b;
  b.Input("x", {3}).Node("Exp", {"x"}, {"y"}).Output("y");
  Write("net.onnx", b.Model());
  options_.models = {File("net.onnx")};
  SearchOptions search;
  search.trials = 1;
  search.confirm = false;
  EXPECT_FALSE(MakeJobSpecs(options_, search, *PartsOf(options_, search, {}))->front().has_model());
}

}  // namespace
}  // namespace hone::cli
