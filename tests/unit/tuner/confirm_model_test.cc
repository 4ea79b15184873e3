// SPDX-License-Identifier: Apache-2.0
// The run of a whole model while its files do not arrive, and while its compiler waits or fails. The run itself is in
// tests/farm.
#include "tuner/confirm_model.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/digest.h"
#include "base/temporary_folder.h"
#include "hone/v1/file.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"

namespace hone::tuner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kWaiting[] = "waiting to compile the whole model";

// Does not answer before the caller goes away.
class HangingFiles final : public v1::FileService::Service {
 public:
  grpc::Status Describe(grpc::ServerContext* context, const v1::DescribeFileRequest*, v1::FileDescription*) override {
    asked = true;
    for (int i = 0; i < 2000 && !context->IsCancelled(); ++i) absl::SleepFor(absl::Milliseconds(10));
    return {grpc::StatusCode::NOT_FOUND, "the caller waited for 20 s"};
  }
  std::atomic<bool> asked = false;
};

class OneJob final : public v1::TunerService::Service {
 public:
  grpc::Status ReportProgress(grpc::ServerContext*, const v1::ReportProgressRequest* request,
                              v1::ReportProgressResponse* response) override {
    const std::lock_guard lock(mutex_);
    const std::string& activity = request->progress().activity();
    if (!activity.empty() && (activities_.empty() || activities_.back() != activity)) activities_.push_back(activity);
    response->set_cancelled(is_cancelled(activities_));
    return grpc::Status::OK;
  }
  // Asked at each report, with all activities so far.
  std::function<bool(const std::vector<std::string>&)> is_cancelled = [](const auto&) { return false; };

 private:
  std::mutex mutex_;
  std::vector<std::string> activities_;
};

class ConfirmModelTest : public testing::Test {
 protected:
  ConfirmModelTest() {
    const std::string address = "unix:" + (folder_ / "socket").string();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    server_ = builder.RegisterService(&files_).RegisterService(&job_service_).BuildAndStart();
    channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    v1::ModelFile& file = *leased_.mutable_spec()->mutable_model()->add_files();
    file.set_path("net.onnx");
    file.mutable_file()->set_digest(Sha256Hex("net"));
    job_.heartbeat = absl::Milliseconds(10);
  }
  ~ConfirmModelTest() override { server_->Shutdown(); }
  absl::StatusOr<v1::ModelConfirmation> Confirm() {
    Progress progress;
    return ConfirmModel(leased_, job_, farm_, {compiler_, [this] { return channel_; }}, progress);
  }
  // The compiler is a shell script, in which $folder is the folder of model_compiler.h. The model has no files.
  void Compile(const std::string& script) {
    leased_.mutable_spec()->mutable_model()->clear_files();
    std::ofstream(folder_ / "compiler") << "folder=${1#--compile-model=}\n" << script << "\n";
    compiler_ = {"/bin/sh", folder_ / "compiler"};
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  HangingFiles files_;
  OneJob job_service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  JobClock job_clock_;
  FarmClient farm_{[this] { return channel_; }, v1::JobLease(), "test", &job_clock_};
  v1::Job leased_;
  Job job_;
  std::vector<std::string> compiler_ = {"/no/compiler"};
};

TEST_F(ConfirmModelTest, ATransferThatHangsEndsAtTheTimeOfTheJob) {
  job_.until = absl::Now() + absl::Milliseconds(500);
  const auto confirmation = Confirm();
  ASSERT_TRUE(confirmation.ok()) << confirmation.status();
  EXPECT_THAT(confirmation->problem(), HasSubstr("the time of the job (--until) was over"));
}

TEST_F(ConfirmModelTest, ATransferThatHangsEndsWhenTheJobIsCancelled) {
  job_service_.is_cancelled = [this](const auto&) { return files_.asked.load(); };
  const auto confirmation = Confirm();
  EXPECT_TRUE(absl::IsCancelled(confirmation.status())) << confirmation.status();
}

TEST_F(ConfirmModelTest, WaitingToCompileIsShownAndEndsWithTheJob) {
  Compile("echo $$ > " + (folder_ / "pid").string() + "; exec sleep 60");
  job_service_.is_cancelled = [](const auto& activities) {
    return !activities.empty() && activities.back().starts_with(kWaiting);
  };
  const auto confirmation = Confirm();
  EXPECT_TRUE(absl::IsCancelled(confirmation.status())) << confirmation.status();
  std::string pid;
  ASSERT_TRUE(std::ifstream(folder_ / "pid") >> pid);
  EXPECT_FALSE(std::filesystem::exists("/proc/" + pid)) << "the compiler goes on";
}

TEST_F(ConfirmModelTest, TheEndOfTheWaitIsShown) {
  Compile("sleep 2; touch $folder/compiling; exec sleep 60");
  job_service_.is_cancelled = [](const auto& activities) {
    const size_t count = activities.size();
    return count > 2 && activities[count - 2].starts_with(kWaiting) && activities.back().starts_with("compiling");
  };
  const auto confirmation = Confirm();
  EXPECT_TRUE(absl::IsCancelled(confirmation.status())) << confirmation.status();
}

TEST_F(ConfirmModelTest, WaitingToCompileEndsAtTheTimeOfTheJob) {
  Compile("exec sleep 60");
  job_.until = absl::Now() + absl::Milliseconds(500);
  const auto confirmation = Confirm();
  ASSERT_TRUE(confirmation.ok()) << confirmation.status();
  EXPECT_THAT(confirmation->problem(), HasSubstr("the time of the job (--until) was over"));
}

TEST_F(ConfirmModelTest, ACompilerWithoutMemoryIsAReasonAndNoFailure) {
  Compile("exit 2");
  const auto confirmation = Confirm();
  ASSERT_TRUE(confirmation.ok()) << confirmation.status();
  EXPECT_THAT(confirmation->problem(), AllOf(HasSubstr("compiling the whole model needs more than"),
                                             HasSubstr("GiB of memory, half of what the tuner's machine has")));
  Compile("kill -ABRT $$");
  EXPECT_THAT(Confirm()->problem(), AllOf(HasSubstr("was killed by signal 6"), HasSubstr("it may use")));
}

}  // namespace
}  // namespace hone::tuner
