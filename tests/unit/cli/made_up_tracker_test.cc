// SPDX-License-Identifier: Apache-2.0
// The behaviour of commands while a tracker does not answer, and the requests that they send, against a fake tracker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_text.h"
#include "compiler/target/target.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/job.grpc.pb.h"
#include "hone/v1/record.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/records/sample_records.h"
#include "tracker/convert.h"

namespace hone::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kBoardTarget[] = "arm64 -mcpu=cortex-a76";
constexpr char kBoard[] = "Cortex-A76 of 4 cores";

// Accepts jobs and answers no later call. Sends Ctrl-C to this process at the first Watch, and again at the second
// Cancel.
class AwayJobs final : public v1::JobService::Service {
 public:
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitJobRequest* request, v1::Job* job) override {
    job->set_id("j1");
    job->set_state(v1::JOB_STATE_RUNNING);
    *job->mutable_spec() = request->spec();
    return grpc::Status::OK;
  }
  grpc::Status Watch(grpc::ServerContext*, const v1::WatchJobRequest*, v1::WatchJobResponse*) override {
    if (++watches == 1) kill(getpid(), SIGINT);
    return {grpc::StatusCode::UNAVAILABLE, "away"};
  }
  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelJobRequest*, v1::Job*) override {
    if (++cancels == 2) kill(getpid(), SIGINT);
    return {grpc::StatusCode::UNAVAILABLE, "away"};
  }

  std::atomic<int> watches = 0, cancels = 0;
};

class OneBoard final : public v1::AdminService::Service {
 public:
  grpc::Status ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest*,
                           v1::ListDevicesResponse* response) override {
    v1::Device* device = response->add_devices();
    device->set_agent_id("board");
    device->mutable_state()->set_device_id("cpu");
    device->mutable_state()->set_target(kBoardTarget);
    device->mutable_state()->mutable_fingerprint()->set_text(kBoard);
    return grpc::Status::OK;
  }
};

class MadeUpRecords final : public v1::RecordService::Service {
 public:
  grpc::Status ListBest(grpc::ServerContext*, const v1::ListBestRequest* request,
                        grpc::ServerWriter<v1::BestRecordResponse>*) override {
    asked = *request;
    return grpc::Status::OK;
  }

  v1::ListBestRequest asked;
};

class MadeUpTrackerTest : public testing::Test {
 protected:
  MadeUpTrackerTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&jobs_);
    builder.RegisterService(&devices_);
    builder.RegisterService(&records_);
    server_ = builder.BuildAndStart();
    graph::GraphBuilder b;
    b.Input("x", {3}).Node("Exp", {"x"}, {"y"}).Output("y");
    std::ofstream(model_, std::ios::binary) << b.Model();
  }
  ~MadeUpTrackerTest() override { server_->Shutdown(); }

  // Runs `hone ARGUMENTS --tracker ADDRESS`. Its output is in out_ and error_.
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--tracker", address_});
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects a vector in reverse order
    CLI::App app;
    absl::Status result;
    AddTuneCommand(app, &result);
    AddRecordsCommand(app, &result);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    app.parse(arguments);
    out_ = testing::internal::GetCapturedStdout();
    const int code = FinishCommand(result);
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::string address_ = "unix:" + (folder_ / "socket").string(), model_ = folder_ / "exp.onnx";
  AwayJobs jobs_;
  OneBoard devices_;
  MadeUpRecords records_;
  std::unique_ptr<grpc::Server> server_;
  std::string out_, error_;
};

TEST_F(MadeUpTrackerTest, InterruptWithoutTrackerReportsThatTheJobKeepsRunning) {
  EXPECT_EQ(Run({"tune", model_, "--trials", "1", "--json"}), kWorkFailed);
  EXPECT_GE(jobs_.cancels, 2) << "it is asked again";
  EXPECT_EQ(json::parse(out_).at("job"), "j1") << "what was last heard of it";
  EXPECT_THAT(error_,
              AllOf(HasSubstr("Ctrl-C again ends at once"), HasSubstr("j1 keeps running at tracker " + address_),
                    HasSubstr("hone cancel j1 --tracker " + address_)));
}

TEST_F(MadeUpTrackerTest, ModelRecordsUseTheTargetOfTheDevice) {
  ASSERT_EQ(Run({"records", "best", "--model", model_, "--device", "board", "--json"}), kSuccess) << error_;
  const std::string target = target::Print(target::ParseTarget(kBoardTarget).value());
  EXPECT_EQ(json::parse(out_).at("target"), target);
  EXPECT_EQ(records_.asked.key().target(), target);
  EXPECT_EQ(records_.asked.key().device_fingerprint(), kBoard);
  ASSERT_EQ(Run({"records", "lock", "--model", model_, "--device", "board", "-o", folder_ / "hone.lock", "--json"}),
            kSuccess)
      << error_;
  EXPECT_EQ(json::parse(out_).at("programs").at(0).at("target"), target);
}

TEST_F(MadeUpTrackerTest, RecordsAreQueriedByBothTargetTexts) {
  ASSERT_EQ(Run({"records", "best", "--target", kBoardTarget}), kSuccess) << error_;
  EXPECT_EQ(records_.asked.key().target(), target::Print(target::ParseTarget(kBoardTarget).value()));
  EXPECT_EQ(records_.asked.other_target(), kBoardTarget);
}

TEST(FirstJobFailureTest, JobCancelledElsewhereIsAFailure) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(absl::IsCancelled(FirstJobFailure({job})));
  EXPECT_EQ(FirstJobFailure({job}, true), absl::OkStatus());
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(FirstJobFailure({job}), absl::OkStatus());
}

}  // namespace
}  // namespace hone::cli
