// SPDX-License-Identifier: Apache-2.0
// Tuning jobs that end with a run of the whole model, with real processes: the result, what survives a death of each
// process, what is told when it fails, and what is not sent.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "files/transfer.h"
#include "nlohmann/json.hpp"
#include "tests/farm/process_farm.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::farm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::CommandResult;

// The part of the job's activity while the run is on the device.
constexpr char kMeasuring[] = "measuring the whole model";

class ConfirmationTest : public FarmProcessTest {
 protected:
  void SetUp() override {
    const CommandResult made =
        tests::RunCommand(fmt::format("{} {}", HONE_MAKE_MODELS_BINARY, (folder_ / "models").string()));
    ASSERT_EQ(made.exit_code, 0) << made.output;
    Restart();
    agent_ = StartAgent("board");
    tuner_ = StartTuner({"--name", "first"});
  }
  void Restart() {
    StartTracker();
    Connect();
  }
  std::string Model(const std::string& name) const { return (folder_ / "models" / (name + ".onnx")).string(); }
  // The arguments of a short search.
  std::vector<std::string> Command(const std::string& command, const std::string& model) const {
    return {HONE_BINARY, command, Model(model), "--trials", "4", "--threads", "1", "--tracker", address_};
  }
  CommandResult Run(const std::vector<std::string>& arguments) {
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    return tests::RunCommand(line);
  }
  std::string Submitted(const std::string& model) {
    const CommandResult submitted = Run(Command("submit", model));
    EXPECT_EQ(submitted.exit_code, 0) << submitted.output;
    const v1::Job job = Newest();
    return job.id();
  }
  v1::Job Newest() {
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    v1::JobService::NewStub(channel_)->List(&context, v1::ListJobsRequest(), &response);
    return response.jobs().empty() ? v1::Job() : response.jobs(0);
  }
  bool Does(const std::string& job, const std::string& activity) {
    return GetJob(job).progress().activity().find(activity) != std::string::npos;
  }
  bool HasEnded(const std::string& job) {
    return GetJob(job).state() != v1::JOB_STATE_QUEUED && GetJob(job).state() != v1::JOB_STATE_RUNNING;
  }
  std::string Logs() const { return agent_->Log() + tuner_->Log() + tracker_->Log(); }
  // Waits for the end of the job, which must have succeeded with a measurement of the model.
  void ExpectMeasured(const std::string& job) {
    ASSERT_TRUE(Eventually([&] { return HasEnded(job); })) << Logs();
    const v1::Job ended = GetJob(job);
    EXPECT_EQ(ended.state(), v1::JOB_STATE_SUCCEEDED) << ended.error() << Logs();
    const v1::ModelConfirmation& whole = ended.progress().confirmation();
    EXPECT_EQ(whole.problem(), "");
    EXPECT_EQ(whole.device(), "board/cpu");
    EXPECT_GT(whole.ratio(), 0);
    EXPECT_EQ(whole.run().packages_size(), 2);
  }
  // How many files the tracker stores.
  int StoredFiles() const {
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      files += entry.path().extension() == ".chunks" && entry.path().parent_path().extension() == ".files";
    }
    return files;
  }
  // The processes that compile a model for the tuner.
  static std::vector<pid_t> Compilers(pid_t tuner) {
    std::vector<pid_t> found;
    for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", tuner))) {
      std::ifstream file(thread.path() / "children");
      for (pid_t child = 0; file >> child;) {
        std::ifstream words(fmt::format("/proc/{}/cmdline", child));
        const std::string line{std::istreambuf_iterator<char>(words), {}};
        if (line.find("--compile-model=") != std::string::npos) found.push_back(child);
      }
    }
    return found;
  }

  std::unique_ptr<Process> agent_, tuner_;
};

TEST_F(ConfirmationTest, AJobEndsWithARunOfTheWholeModel) {
  const CommandResult tuned = Run(Command("tune", "external_data"));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.output << Logs();
  EXPECT_THAT(tuned.output, AllOf(HasSubstr("x ("), HasSubstr(") measured on board/cpu: "),
                                  HasSubstr("kernels together: "), Not(HasSubstr("not measured as a whole"))));
  const v1::Job job = Newest();
  ExpectMeasured(job.id());
  const v1::ModelConfirmation& whole = job.progress().confirmation();
  EXPECT_LE(whole.ratio_low(), whole.ratio());
  EXPECT_GE(whole.ratio_high(), whole.ratio());
  EXPECT_GT(whole.ratio_low(), 0);
  EXPECT_GT(whole.kernels_ratio(), 0);
  EXPECT_LE(whole.run().packages(0).seconds_size(), 1000);
  const CommandResult listed = Run({HONE_BINARY, "jobs", "--all", "--json", "--tracker", address_});
  const auto json = nlohmann::json::parse(listed.output).at("jobs").at(0).at("confirmation");
  EXPECT_EQ(json.at("device"), "board/cpu");
  EXPECT_GT(json.at("before_ms").get<double>(), 0);
  EXPECT_TRUE(json.at("packages").empty());  // a list has no reports
  EXPECT_TRUE(Eventually([&] { return StoredFiles() == GetJob(job.id()).spec().model().files_size(); }))
      << StoredFiles() << ": the packages stay";
}

TEST_F(ConfirmationTest, OpenSizesAreImportedAsTheCommandDid) {
  const std::string job = Submitted("symbolic_batch");
  ExpectMeasured(job);
  EXPECT_EQ(GetJob(job).progress().confirmation().kernels_ratio(), 0) << "the sums are for several sizes";
}

TEST_F(ConfirmationTest, TheNextTunerOnlyMakesTheRun) {
  const std::string job = Submitted("residual_blocks");
  ASSERT_TRUE(Eventually([&] { return Does(job, kMeasuring); })) << Logs();
  tuner_->Signal(SIGKILL);
  tuner_->Wait();
  const int64_t records = Stats().records(), trials = GetJob(job).progress().trials();
  EXPECT_TRUE(GetJob(job).progress().search_ended());
  tuner_ = StartTuner({"--name", "first"});  // the same name: its job is leased again at once
  ExpectMeasured(job);
  EXPECT_EQ(Stats().records(), records) << "nothing was searched again, and a run is no record";
  EXPECT_EQ(GetJob(job).progress().trials(), trials);
}

TEST_F(ConfirmationTest, TheRunSurvivesItsDeviceAndItsTracker) {
  const std::string job = Submitted("residual_blocks");
  ASSERT_TRUE(Eventually([&] { return Does(job, kMeasuring) && Measuring(); })) << Logs();
  agent_->Signal(SIGKILL);
  agent_->Wait();
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  Restart();
  agent_ = StartAgent("board");
  ExpectMeasured(job);
}

TEST_F(ConfirmationTest, CtrlCEndsTheRun) {
  Process command(Command("tune", "residual_blocks"), folder_ / "command.log");
  ASSERT_TRUE(Eventually([&] {
    const v1::Job job = Newest();
    return !job.id().empty() && Does(job.id(), kMeasuring) && Measuring();
  })) << command.Log()
      << Logs();
  command.Signal(SIGINT);
  EXPECT_EQ(command.Wait(), 0) << command.Log();
  EXPECT_EQ(Newest().state(), v1::JOB_STATE_CANCELLED) << "no second job compares the kernels, which are compared";
  EXPECT_TRUE(Eventually([&] { return !Measuring(); }));
  EXPECT_THAT(command.Log(), HasSubstr("a sum, not measured as a whole"));
}

TEST_F(ConfirmationTest, AModelThatDoesNotCompileFailsNoJob) {
  const std::string first = Submitted("odd_extents");
  ExpectMeasured(first);
  tests::WriteWholeFile(folder_ / "damaged.onnx", "no model");
  v1::JobSpec spec = GetJob(first).spec();
  spec.set_request_id("another");
  auto sent = files::FileTransfer([&] { return channel_; }).Upload((folder_ / "damaged.onnx").string());
  ASSERT_TRUE(sent.ok()) << sent.status();
  *spec.mutable_model()->mutable_files(0)->mutable_file() = *sent;
  const std::string second = SubmitJob(spec).id();
  ASSERT_TRUE(Eventually([&] { return HasEnded(second); })) << Logs();
  EXPECT_EQ(GetJob(second).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(GetJob(second).progress().confirmation().problem(),
              AllOf(HasSubstr("the whole model does not compile"), HasSubstr("odd_extents.onnx"), Not(HasSubstr("/"))));
}

TEST_F(ConfirmationTest, ACompilerThatDiesFailsNoJobAndNoTuner) {
  const std::string job = Submitted("super_resolution");
  ASSERT_TRUE(Eventually([&] {
    for (const pid_t compiler : Compilers(tuner_->pid())) kill(compiler, SIGKILL);
    return HasEnded(job);
  })) << Logs();
  EXPECT_EQ(GetJob(job).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(GetJob(job).progress().confirmation().problem(),
            "the compiler of the whole model was killed by signal 9 (Killed)");
  EXPECT_TRUE(tuner_->Running());
}

TEST_F(ConfirmationTest, WithoutConfirmationNoModelLeavesTheMachine) {
  std::vector<std::string> command = Command("tune", "external_data");
  command.push_back("--no-confirm");
  const CommandResult tuned = Run(command);
  ASSERT_EQ(tuned.exit_code, 0) << tuned.output;
  EXPECT_THAT(tuned.output, HasSubstr("a sum, not measured as a whole"));
  EXPECT_FALSE(Newest().spec().has_model());
  EXPECT_FALSE(Newest().progress().has_confirmation());
  EXPECT_EQ(StoredFiles(), 0);
}

}  // namespace
}  // namespace hone::farm
