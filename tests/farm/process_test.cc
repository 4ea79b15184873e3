// The farm as real processes on loopback: hone-tracker, hone-agent, and the test in the tuner's and client's places.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>

#include "base/temporary_folder.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/job.grpc.pb.h"
#include "hone/v1/record.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "tests/conformance/device/opencl_kernels.h"
#include "tests/farm/builders.h"
#include "tests/farm/processes.h"
#include "tests/unit/device_agent/hand_made_kernels.h"
#include "transport/transport.h"

namespace hone::farm {
namespace {

using agent::HandMadeBatch;
using testing::HasSubstr;

class FarmProcessTest : public testing::Test {
 protected:
  void StartTracker(const std::string& listen = "127.0.0.1:0", const std::vector<std::string>& more = {}) {
    std::remove((folder_ / "port").c_str());
    std::vector<std::string> arguments = {HONE_TRACKER_BINARY, "--listen",    listen,          "--records",
                                          folder_ / "records", "--port-file", folder_ / "port"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    tracker_ = std::make_unique<Process>(arguments, folder_ / "tracker.log");
    ASSERT_TRUE(Eventually([&] { return std::ifstream(folder_ / "port").good() || !tracker_->Running(); }));
    std::ifstream(folder_ / "port") >> address_;
    ASSERT_FALSE(address_.empty()) << tracker_->Log();
  }
  void Connect(const TlsFiles& tls = {}) { channel_ = OpenChannel(address_, tls).value(); }
  std::unique_ptr<Process> StartAgent(const std::string& name = "test", const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {HONE_AGENT_BINARY, "--tracker", address_, "--name", name, "--threads", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Process>(arguments, folder_ / "agent.log");
  }
  // As a client and a tuner: a job, leased.
  void LeaseNewJob(const std::string& name) {
    // Registering takes a slow or instrumented agent longer than a job's lease lasts.
    ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << "no agent has registered";
    grpc::ClientContext submit_context, lease_context;
    v1::SubmitJobRequest submit;
    *submit.mutable_spec() = tracker::SpecOf(name);
    ASSERT_TRUE(v1::JobService::NewStub(channel_)->Submit(&submit_context, submit, &job_).ok());
    v1::LeaseJobRequest lease;
    lease.set_protocol_version(v1::PROTOCOL_VERSION_1);
    lease.set_tuner_id("tuner");
    lease.mutable_max_wait()->set_seconds(5);
    v1::LeaseJobResponse response;
    ASSERT_TRUE(v1::TunerService::NewStub(channel_)->LeaseJob(&lease_context, lease, &response).ok());
    ASSERT_EQ(response.job().id(), job_.id());
    lease_ = response.lease();
  }
  std::string Submit(const v1::Batch& batch, const std::string& id) {
    grpc::ClientContext context;
    v1::SubmitBatchRequest request;
    *request.mutable_lease() = lease_;
    request.set_client_batch_id(id);
    *request.mutable_batch() = batch;
    v1::SubmitBatchResponse response;
    const grpc::Status status = v1::TunerService::NewStub(channel_)->SubmitBatch(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.batch_id();
  }
  v1::BatchResult Wait(const std::string& batch_id) {
    for (int i = 0; i < 10; ++i) {
      grpc::ClientContext context;
      v1::WaitBatchRequest request;
      *request.mutable_lease() = lease_;
      request.add_batch_ids(batch_id);
      request.mutable_max_wait()->set_seconds(5);
      v1::WaitBatchResponse response;
      const grpc::Status status = v1::TunerService::NewStub(channel_)->WaitBatch(&context, request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      if (!status.ok()) break;
      if (response.finished_size() == 1) return response.finished(0).result();
    }
    ADD_FAILURE() << "batch " << batch_id << " was not finished";
    return {};
  }
  std::map<std::string, v1::Outcome> Measure(const std::vector<std::string>& symbols, const std::string& id) {
    const v1::BatchResult result = Wait(Submit(HandMadeBatch(symbols), id));
    EXPECT_EQ(result.error(), "");
    std::map<std::string, v1::Outcome> outcomes;
    for (const v1::CandidateOutcome& outcome : result.outcomes()) outcomes[outcome.candidate_id()] = outcome.outcome();
    return outcomes;
  }
  std::vector<v1::Device> Devices() {
    grpc::ClientContext context;
    v1::ListDevicesResponse response;
    v1::AdminService::NewStub(channel_)->ListDevices(&context, v1::ListDevicesRequest(), &response);
    return {response.devices().begin(), response.devices().end()};
  }
  v1::RecordStatsResponse Stats() {
    grpc::ClientContext context;
    v1::RecordStatsResponse response;
    const grpc::Status status =
        v1::RecordService::NewStub(channel_)->Stats(&context, v1::RecordStatsRequest(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  bool Measuring() {
    const std::vector<v1::Device> devices = Devices();
    return !devices.empty() && devices[0].activity() == v1::DEVICE_ACTIVITY_MEASURING;
  }
  // A batch that keeps the device busy for about `seconds`.
  static v1::Batch LongBatch(double seconds) {
    v1::Batch batch = HandMadeBatch({"good", "hang"});
    batch.mutable_policy()->set_timeout_seconds(seconds / 2);
    return batch;
  }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::unique_ptr<Process> tracker_;
  std::string address_;
  std::shared_ptr<grpc::Channel> channel_;
  v1::Job job_;
  v1::JobLease lease_;
};

TEST_F(FarmProcessTest, GoodAndEvilKernelsAreToldApartAndRecorded) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  const auto outcomes = Measure({"good", "wrong", "crash", "past_end", "hang", "packed_double"}, "b1");
  EXPECT_TRUE(outcomes.at("good").has_timing());
  EXPECT_TRUE(outcomes.at("packed_double").has_timing());
  EXPECT_EQ(outcomes.at("wrong").failure().kind(), v1::FAILURE_KIND_WRONG_OUTPUT);
  EXPECT_EQ(outcomes.at("crash").failure().kind(), v1::FAILURE_KIND_CRASHED);
  EXPECT_EQ(outcomes.at("past_end").failure().kind(), v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE);
  EXPECT_EQ(outcomes.at("hang").failure().kind(), v1::FAILURE_KIND_RUN_TIMEOUT);
  EXPECT_EQ(Stats().records(), 6) << tracker_->Log();
  EXPECT_EQ(Devices()[0].candidates_done(), 6);
  agent->Signal(SIGTERM);
  EXPECT_EQ(agent->Wait(), 0);
  tracker_->Signal(SIGTERM);
  EXPECT_EQ(tracker_->Wait(), 0);
}

TEST_F(FarmProcessTest, LauncherLetsNoKernelOut) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  const auto outcomes = Measure({"use_network", "fork_process", "kill_parent", "run_program", "good"}, "b1");
  EXPECT_TRUE(outcomes.at("good").has_timing());
  for (const char* evil : {"use_network", "fork_process", "kill_parent"}) {
    EXPECT_EQ(outcomes.at(evil).failure().kind(), v1::FAILURE_KIND_WRONG_OUTPUT) << evil;
  }
  EXPECT_TRUE(outcomes.at("run_program").has_failure());
  EXPECT_FALSE(std::ifstream("/tmp/hone_escaped").good());
  if (agent->Log().find("landlock") == std::string::npos) GTEST_SKIP() << "this system has no Landlock";
  const auto files = Measure({"write_file", "read_file"}, "b2");
  EXPECT_TRUE(files.at("write_file").has_failure());
  EXPECT_TRUE(files.at("read_file").has_failure());
  EXPECT_FALSE(std::ifstream("/tmp/hone_escaped").good());
}

TEST_F(FarmProcessTest, KilledAgentLosesNothing) {
  StartTracker();
  Connect();
  std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  const std::string batch = Submit(LongBatch(1), "b1");
  ASSERT_TRUE(Eventually([&] { return Measuring(); }));
  agent->Signal(SIGKILL);
  EXPECT_EQ(agent->Wait(), -SIGKILL);
  agent = StartAgent();
  const v1::BatchResult result = Wait(batch);
  ASSERT_EQ(result.outcomes_size(), 2);
  EXPECT_TRUE(result.outcomes(0).outcome().has_timing());
  EXPECT_EQ(Devices()[0].losses(), 1);
}

TEST_F(FarmProcessTest, KilledTrackerLosesNoAcceptedResultAndJobsGoOn) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  Measure({"good", "wrong"}, "b1");
  tracker_->Signal(SIGKILL);
  EXPECT_EQ(tracker_->Wait(), -SIGKILL);
  StartTracker(address_);
  Connect();
  EXPECT_EQ(Stats().records(), 2);
  const std::string job_id = job_.id();
  LeaseNewJob("a");  // the same request: the same job, queued again
  EXPECT_EQ(job_.id(), job_id);
  EXPECT_TRUE(Measure({"good"}, "b1").at("good").has_timing());
  EXPECT_EQ(Stats().records(), 3);
}

TEST_F(FarmProcessTest, SecondAgentOfTheSameNameEndsTheFirst) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> first = StartAgent("twin");
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); }));
  const std::unique_ptr<Process> second = StartAgent("twin");
  EXPECT_EQ(first->Wait(), 1);
  EXPECT_THAT(first->Log(), HasSubstr("another process has registered"));
  EXPECT_TRUE(second->Running());
}

TEST_F(FarmProcessTest, CancelledJobFreesTheDevice) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  Submit(LongBatch(600), "b1");
  ASSERT_TRUE(Eventually([&] { return Measuring(); }));
  grpc::ClientContext context;
  v1::CancelJobRequest cancel;
  cancel.set_job_id(job_.id());
  ASSERT_TRUE(v1::JobService::NewStub(channel_)->Cancel(&context, cancel, &job_).ok());
  EXPECT_EQ(job_.state(), v1::JOB_STATE_CANCELLED);
  LeaseNewJob("b");
  EXPECT_TRUE(Measure({"good"}, "b1").at("good").has_timing());
}

TEST_F(FarmProcessTest, PlainTextStaysOnThisMachine) {
  Process open_to_all({HONE_TRACKER_BINARY, "--listen", "0.0.0.0:0", "--records", folder_ / "records"},
                      folder_ / "log");
  EXPECT_EQ(open_to_all.Wait(), 1);
  EXPECT_THAT(open_to_all.Log(), HasSubstr("TLS"));
  Process far_away({HONE_AGENT_BINARY, "--tracker", "192.0.2.1:1"}, folder_ / "log2");
  EXPECT_EQ(far_away.Wait(), 2);
  EXPECT_THAT(far_away.Log(), HasSubstr("TLS"));
}

// As the farm of one command has it, whose tracker comes back under the same name after a kill -9.
TEST_F(FarmProcessTest, APrivateSocketServesAlsoAfterAKill) {
  const std::string socket = "unix:" + (folder_ / "socket").string();
  StartTracker(socket);
  EXPECT_EQ(address_, socket);
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  EXPECT_TRUE(Measure({"good"}, "b1").at("good").has_timing());
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  StartTracker(socket);
  Connect();
  ASSERT_TRUE(Eventually([&] { return Stats().records() == 1 && !Devices().empty(); })) << agent->Log();
  tracker_->Signal(SIGTERM);
  EXPECT_EQ(tracker_->Wait(), 0) << tracker_->Log();
  Process open_to_all({HONE_TRACKER_BINARY, "--listen", "unix:/tmp/socket", "--records", folder_ / "records"},
                      folder_ / "log");
  EXPECT_EQ(open_to_all.Wait(), 1);
  EXPECT_THAT(open_to_all.Log(), HasSubstr("/tmp"));
}

class FarmTlsTest : public FarmProcessTest {
 protected:
  static bool Shell(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }
  // An authority of its own kind and a certificate for localhost signed by it.
  TlsFiles MakeFiles(const std::string& name) {
    const TlsFiles files{folder_ / (name + ".pem"), folder_ / (name + ".key"), folder_ / (name + "-ca.pem")};
    const std::string authority_key = folder_ / (name + "-ca.key"), request = folder_ / (name + ".csr");
    const std::string extensions = folder_ / "extensions";
    std::ofstream(extensions) << "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
    EXPECT_TRUE(
        Shell(fmt::format("openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=authority -keyout {} -out {}",
                          authority_key, files.authority)));
    EXPECT_TRUE(Shell(
        fmt::format("openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout {} -out {}", files.key, request)));
    EXPECT_TRUE(
        Shell(fmt::format("openssl x509 -req -in {} -CA {} -CAkey {} -CAcreateserial -days 1 -extfile {} -out {}",
                          request, files.authority, authority_key, extensions, files.certificate)));
    return files;
  }
  static std::vector<std::string> Arguments(const TlsFiles& files) {
    return {"--tls-cert", files.certificate, "--tls-key", files.key, "--tls-ca", files.authority};
  }
  grpc::StatusCode Call(const TlsFiles& files) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::ListDevicesResponse response;
    return v1::AdminService::NewStub(OpenChannel(address_, files).value())
        ->ListDevices(&context, v1::ListDevicesRequest(), &response)
        .error_code();
  }
};

TEST_F(FarmTlsTest, BothSidesMustShowCertificates) {
  if (!Shell("openssl version")) GTEST_SKIP() << "no openssl program to make certificates with";
  const TlsFiles ours = MakeFiles("ours"), foreign = MakeFiles("foreign");
  StartTracker("127.0.0.1:0", Arguments(ours));
  Connect(ours);
  const std::unique_ptr<Process> agent = StartAgent("tls", Arguments(ours));
  EXPECT_TRUE(Eventually([&] { return !Devices().empty(); }));
  EXPECT_EQ(Call(ours), grpc::StatusCode::OK);
  EXPECT_NE(Call({}), grpc::StatusCode::OK);
  TlsFiles forged = foreign;
  forged.authority = ours.authority;  // trusts the tracker, is not trusted by it
  EXPECT_NE(Call(forged), grpc::StatusCode::OK);
}

// Two devices of one agent: each gets what it can run, and the sandbox lets the driver work.
TEST_F(FarmProcessTest, OpenClMeasuresBesideTheCpu) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent("test", {"--device", "cpu", "--device", "opencl"});
  ASSERT_TRUE(Eventually([&] { return Devices().size() == 2 || !agent->Running(); }));
  if (!agent->Running()) {
    ASSERT_THAT(agent->Log(), HasSubstr("OpenCL")) << "it ends for another reason";
    printf("[SKIP] %s\n", agent->Log().c_str());
    GTEST_SKIP() << "this machine has no OpenCL device";
  }
  LeaseNewJob("a");
  v1::Batch on_cpu = HandMadeBatch({"good", "wrong"});
  v1::Batch on_opencl = HandMadeBatch({"good", "wrong", "two_launches", "packed_double", "hang"});
  on_opencl.set_workload_digest("opencl");
  on_opencl.set_artifact(agent::kOpenClKernels);
  on_opencl.mutable_requirements()->set_architecture("opencl");
  on_opencl.mutable_policy()->set_timeout_seconds(3);  // drivers build at the first call
  on_opencl.mutable_reference()->set_interface(Print(agent::HandMadeInterface("reference", 8, 128)));
  for (v1::Candidate& candidate : *on_opencl.mutable_candidates()) {
    candidate.mutable_kernel()->set_interface(Print(agent::HandMadeInterface(candidate.id(), 8, 128)));
  }
  for (const v1::Device& device : Devices()) {
    const std::string& architecture = device.state().fingerprint().architecture();
    if (architecture != "opencl") on_cpu.mutable_requirements()->set_architecture(architecture);
  }
  const std::string first = Submit(on_opencl, "b1"), second = Submit(on_cpu, "b2");
  const v1::BatchResult opencl = Wait(first), cpu = Wait(second);
  ASSERT_EQ(opencl.error(), "") << agent->Log();
  ASSERT_EQ(cpu.error(), "");
  EXPECT_TRUE(cpu.outcomes(0).outcome().has_timing());
  EXPECT_EQ(cpu.device_name(), "test/cpu");
  for (const int good : {0, 2, 3}) {
    EXPECT_TRUE(opencl.outcomes(good).outcome().has_timing()) << opencl.outcomes(good).DebugString();
  }
  EXPECT_EQ(opencl.outcomes(1).outcome().failure().kind(), v1::FAILURE_KIND_WRONG_OUTPUT);
  EXPECT_EQ(opencl.outcomes(4).outcome().failure().kind(), v1::FAILURE_KIND_RUN_TIMEOUT)
      << opencl.outcomes(4).DebugString();
}

}  // namespace
}  // namespace hone::farm
