// SPDX-License-Identifier: Apache-2.0
// The farm as real processes, hone-tracker and hone-agent; the test itself acts as tuner and client.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/time/clock.h"
#include "base/host_lock.h"
#include "base/identity.h"
#include "base/temporary_folder.h"
#include "device_agent/sandbox/control_group.h"
#include "device_agent/sandbox/sandbox.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/agent.grpc.pb.h"
#include "hone/v1/job.grpc.pb.h"
#include "hone/v1/record.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "pki/identity_folder.h"
#include "tests/conformance/device/opencl_kernels.h"
#include "tests/farm/builders.h"
#include "tests/farm/methods.h"
#include "tests/farm/process_farm.h"
#include "tests/farm/processes.h"
#include "tests/unit/device_agent/hand_made_kernels.h"
#include "tracker/access.h"
#include "transport/farm_identity.h"
#include "transport/transport.h"

namespace hone::farm {
namespace {

using agent::HandMadeBatch;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(FarmProcessTest, GoodAndEvilKernelsAreDistinguishedAndRecorded) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  EXPECT_EQ(job_.spec().submitted_by(), UserName());
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

TEST_F(FarmProcessTest, KernelsCannotEscapeTheLauncher) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  const auto outcomes = Measure({"use_network", "fork_process", "kill_parent", "run_program", "good"}, "b1");
  EXPECT_TRUE(outcomes.at("good").has_timing());
  for (const auto& [evil, call] : std::map<std::string, std::string>{{"use_network", "socket"},
                                                                     {"fork_process", "clone"},
                                                                     {"kill_parent", "getppid"},
                                                                     {"run_program", "execve"}}) {
    EXPECT_EQ(outcomes.at(evil).failure().kind(), v1::FAILURE_KIND_FORBIDDEN_CALL) << evil;
    EXPECT_THAT(outcomes.at(evil).failure().text(), HasSubstr("made the system call " + call));
  }
  const auto files = Measure({"write_file", "read_file"}, "b2");
  EXPECT_TRUE(files.at("write_file").has_failure());
  EXPECT_TRUE(files.at("read_file").has_failure());
  EXPECT_FALSE(std::ifstream("/tmp/hone_escaped").good());
}

TEST_F(FarmProcessTest, SandboxLevelIsReportedAndCanBeRequired) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
  const v1::Sandbox sandbox = Devices()[0].state().sandbox();
  EXPECT_NE(sandbox.level(), v1::SANDBOX_LEVEL_UNSPECIFIED);
  EXPECT_EQ(sandbox.layers_size(), agent::kAllLayers.size());
  const v1::SandboxLayer& group = *sandbox.layers().rbegin();
  EXPECT_EQ(group.name(), "control-group");
  EXPECT_EQ(group.holds(), agent::ControlGroups::OwnFolder().ok()) << group.detail();
  const std::unique_ptr<Process> picky = StartAgent("picky", {"--require-sandbox", "wall"});
  if (sandbox.level() == v1::SANDBOX_LEVEL_WALL) {
    EXPECT_TRUE(Eventually([&] { return Devices().size() == 2; })) << picky->Log();
  } else {
    EXPECT_EQ(picky->Wait(), 1);
    EXPECT_THAT(picky->Log(), HasSubstr("--require-sandbox wall: cpu lacks"));
  }
}

// While another program holds the host lock, the agent is known to the tracker, says what it waits for, and obeys.
TEST_F(FarmProcessTest, AnAgentThatWaitsForTheHostLockSaysSoAndObeys) {
  StartTracker();
  Connect();
  HostLock lock = HostLock::Open().value();
  ASSERT_TRUE(lock.Lock(HostLock::Mode::kExclusive).ok());
  const std::unique_ptr<Process> agent = StartAgent("first"), other = StartAgent("second");
  ASSERT_TRUE(Eventually([&] { return Devices().size() == 2; })) << agent->Log();
  EXPECT_THAT(Devices()[0].health_reason(),
              HasSubstr("its self-test waits: another program measures or compiles on the machine of the agent"));
  EXPECT_THAT(Devices()[0].health_reason(), HasSubstr(HostLock::DefaultPath()));
  other->Signal(SIGTERM);
  EXPECT_EQ(other->Wait(), 0) << other->Log();
  lock.Unlock();
  EXPECT_TRUE(Eventually([&] { return Devices()[0].health() == v1::DEVICE_HEALTH_GOOD; }))
      << Devices()[0].health_reason();
}

// One agent cannot build its sandbox because the system forbids it; a second agent has one.
TEST_F(FarmProcessTest, AFarmThatRequiresASandboxGivesNoWorkToDevicesWithoutOne) {
  StartTracker("", {"--require-sandbox", "wall"});
  Connect();
  const std::unique_ptr<Process> open =
      StartAgent("open", {}, {HONE_WITHOUT_CALLS_BINARY, "unshare", "landlock_create_ruleset", "--"});
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << open->Log();
  EXPECT_EQ(Devices()[0].health(), v1::DEVICE_HEALTH_UNWALLED) << Devices()[0].DebugString();
  EXPECT_THAT(Devices()[0].health_reason(),
              HasSubstr("its sandbox level is filter, but the farm requires wall; missing layers: "));
  LeaseNewJob("a");
  const std::string batch = Submit(HandMadeBatch({"good"}), "b1");
  const auto waiting_for = [&] { return GetJob(job_.id()).waiting_for(); };
  EXPECT_TRUE(Eventually([&] { return waiting_for().find("the farm requires wall") != std::string::npos; }))
      << waiting_for();
  EXPECT_EQ(Devices()[0].batches_done(), 0);
  const std::unique_ptr<Process> walled = StartAgent("walled");
  ASSERT_TRUE(Eventually([&] { return Devices().size() == 2; })) << walled->Log();
  if (Devices()[1].state().sandbox().level() != v1::SANDBOX_LEVEL_WALL) GTEST_SKIP() << "this system has no wall";
  EXPECT_TRUE(Wait(batch).outcomes(0).outcome().has_timing());
  EXPECT_EQ(Devices()[0].batches_done(), 0);
  EXPECT_EQ(Devices()[1].batches_done(), 1);
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
  LeaseNewJob("a");  // a repeated request returns the same job, which is queued again
  EXPECT_EQ(job_.id(), job_id);
  EXPECT_TRUE(Measure({"good"}, "b1").at("good").has_timing());
  EXPECT_EQ(Stats().records(), 3);
}

// The agent keeps running while its tracker is restored from a copy that knows less than the agent.
TEST_F(FarmProcessTest, RestoredBackupWorksWithTheRunningFarm) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  LeaseNewJob("a");
  const std::string job_id = job_.id();
  Measure({"good"}, "b1");
  const auto run = [&](const std::string& what) {
    std::remove((folder_ / "copy.log").c_str());
    Process process({HONE_TRACKER_BINARY, what, "--records", folder_ / "records", folder_ / "copy"},
                    folder_ / "copy.log");
    const int status = process.Wait();
    return std::pair(status, process.Log());
  };
  ASSERT_EQ(run("backup").first, 0) << run("backup").second;
  Measure({"good", "wrong"}, "b2");
  const auto [refused, why] = run("restore");
  EXPECT_EQ(refused, 1);
  EXPECT_THAT(why, HasSubstr("stop the tracker"));
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  const auto [restored, said] = run("restore");
  ASSERT_EQ(restored, 0) << said;
  EXPECT_THAT(said, HasSubstr("records.replaced-1"));
  StartTracker();
  Connect();
  EXPECT_EQ(Stats().records(), 1);
  LeaseNewJob("a");
  EXPECT_EQ(job_.id(), job_id);
  EXPECT_TRUE(Measure({"good"}, "b3").at("good").has_timing()) << agent->Log();
  EXPECT_EQ(Stats().records(), 2);
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

TEST_F(FarmProcessTest, PlainTextIsForPrivateSockets) {
  const auto log_of = [&](const std::vector<std::string>& arguments, int status) {
    const std::string log = folder_ / "refused.log";
    std::remove(log.c_str());
    Process refused(arguments, log);
    EXPECT_EQ(refused.Wait(), status);
    return refused.Log();
  };
  const std::string records = folder_ / "records";
  EXPECT_THAT(log_of({HONE_TRACKER_BINARY, "--listen", "127.0.0.1:0", "--records", records}, 1), HasSubstr("TLS"));
  EXPECT_THAT(log_of({HONE_TRACKER_BINARY, "--listen", "unix:/tmp/socket", "--records", records}, 1),
              HasSubstr("/tmp"));
  EXPECT_THAT(log_of({HONE_AGENT_BINARY, "--tracker", "127.0.0.1:1", "--identity", folder_ / "none"}, 1),
              HasSubstr("join a farm first"));
}

// The farm of one command restarts its tracker under the same name after a kill -9.
TEST_F(FarmProcessTest, AnAgentFindsATrackerAgainThatWasKilled) {
  StartTracker();
  Connect();
  const std::unique_ptr<Process> agent = StartAgent();
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  StartTracker();
  Connect();
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
  tracker_->Signal(SIGTERM);
  EXPECT_EQ(tracker_->Wait(), 0) << tracker_->Log();
}

// A tracker behind TLS. OpenSSL makes the certificates, signed by its authority or by a foreign one, because the
// tracker has no signing key here.
class FarmTlsTest : public FarmProcessTest {
 protected:
  void SetUp() override {
    if (!Shell("openssl version")) GTEST_SKIP() << "no openssl program to make certificates with";
    MakeAuthority("ours");
    Certificate("ours", "tracker", "DNS:localhost,IP:127.0.0.1");
    StartTracker("127.0.0.1:0", {"--pki", folder_ / "tracker"});
  }
  static bool Shell(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }
  void MakeAuthority(const std::string& name) {
    EXPECT_TRUE(Shell(fmt::format("{} -x509 -days 1 -subj /CN=authority -keyout {} -out {}", kNewKey,
                                  (folder_ / (name + "-ca.key")).string(), (folder_ / (name + "-ca.pem")).string())));
  }
  // Makes a certificate in a folder of its own. names: the subject, as OpenSSL writes it; days: validity.
  TlsFiles Certificate(const std::string& authority, const std::string& name, const std::string& names, int days = 1) {
    const std::filesystem::path own = folder_ / name;
    EXPECT_TRUE(pki::MakeFolder(own).ok());
    const TlsFiles files = pki::FilesIn(own);
    const std::string ca = folder_ / (authority + "-ca"), key = own / "key", request = own / "request";
    std::ofstream(own / "extensions") << "subjectAltName=critical," << names << "\n";
    EXPECT_TRUE(Shell(fmt::format("{} -subj / -keyout {} -out {}", kNewKey, key, request)));
    EXPECT_TRUE(Shell(
        fmt::format("openssl x509 -req -in {} -CA {}.pem -CAkey {}.key -CAcreateserial -days {} -extfile {} -out {}",
                    request, ca, ca, days, (own / "extensions").string(), (own / "certificate").string())));
    const std::string identity = pki::ReadFile(key).value() + pki::ReadFile(own / "certificate").value();
    EXPECT_TRUE(pki::WriteFile(files.identity, identity).ok());
    EXPECT_TRUE(Shell(fmt::format("cp {}.pem {}", ca, files.authority)));
    return files;
  }
  TlsFiles CertificateFor(Role role, const std::string& name) {
    return Certificate("ours", fmt::format("{}-{}", Name(role), name),
                       fmt::format("URI:hone://farm/{}/{}", Name(role), name));
  }
  static std::vector<std::string> Arguments(const TlsFiles& files) {
    return {"--identity", std::filesystem::path(files.identity).parent_path()};
  }
  grpc::Status Call(const std::string& method, const TlsFiles& files) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    const grpc::Slice nothing;
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer response;
    const auto done = std::make_shared<std::promise<grpc::Status>>();
    grpc::GenericStub stub(OpenChannel(address_, files).value());
    stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                   [done](const grpc::Status& status) { done->set_value(status); });
    return done->get_future().get();
  }
  grpc::StatusCode Synchronize(const TlsFiles& files, const std::string& agent_id) {
    grpc::ClientContext context;
    v1::SynchronizeRequest request;
    v1::SynchronizeResponse response;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_agent_id(agent_id);
    request.set_boot_id("thief");
    request.set_sequence(1);
    return v1::AgentService::NewStub(OpenChannel(address_, files).value())
        ->Synchronize(&context, request, &response)
        .error_code();
  }

  static constexpr const char* kNewKey = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  static constexpr const char* kListDevices = "/hone.v1.AdminService/ListDevices";
};

TEST_F(FarmTlsTest, OnlyCertificatesOfTheFarmAreLetIn) {
  using enum grpc::StatusCode;
  const std::string viewer = "URI:hone://farm/viewer/ann";
  const TlsFiles ours = Certificate("ours", "ours", viewer);
  EXPECT_EQ(Call(kListDevices, ours).error_code(), OK);
  MakeAuthority("foreign");
  TlsFiles forged = Certificate("foreign", "foreign", viewer);
  forged.authority = ours.authority;  // trusts the tracker; the tracker does not trust its certificate
  EXPECT_EQ(Call(kListDevices, forged).error_code(), UNAVAILABLE);
  const TlsFiles expiring = Certificate("ours", "expired", viewer, 0);
  EXPECT_TRUE(Eventually([&] { return Call(kListDevices, expiring).error_code() == UNAVAILABLE; }));
  for (const char* names : {"DNS:localhost", "DNS:hone.farm", "URI:hone://farm/king/ann", "URI:hone://farm/viewer/",
                            "URI:hone://farm/viewer/ann,URI:hone://farm/admin/ann"}) {
    EXPECT_EQ(Call(kListDevices, Certificate("ours", "nameless", names)).error_code(), UNAUTHENTICATED) << names;
  }
}

TEST_F(FarmTlsTest, EveryRoleCallsWhatIsItsOwnAndNothingElse) {
  for (const Role role : {Role::kAgent, Role::kTuner, Role::kClient, Role::kViewer, Role::kAdmin}) {
    const TlsFiles files = CertificateFor(role, "ann");
    for (const std::string& method : AllMethods()) {
      const std::string refusal(tracker::CheckRole(role, method).message());
      const grpc::Status status = Call(method, files);
      if (method == tracker::kJoinMethod) {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);  // a certificate does not replace the token
      } else if (refusal.empty()) {
        EXPECT_THAT(status.error_message(), Not(HasSubstr("may not call"))) << Name(role) << " " << method;
      } else {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << Name(role) << " " << method;
        EXPECT_EQ(status.error_message(), refusal);
      }
    }
    EXPECT_EQ(Call("/hone.v1.AdminService/NoSuchMethod", files).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST_F(FarmTlsTest, ACallerMayUseOnlyTheNameInItsCertificate) {
  Connect(CertificateFor(Role::kViewer, "ann"));
  const std::unique_ptr<Process> agent = StartAgent("", Arguments(CertificateFor(Role::kAgent, "board")));
  ASSERT_TRUE(Eventually([&] { return !Devices().empty(); })) << agent->Log();
  EXPECT_EQ(Devices()[0].agent_id(), "board");
  const TlsFiles other = CertificateFor(Role::kAgent, "other");
  EXPECT_EQ(Synchronize(other, "board"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Synchronize(other, "other"), grpc::StatusCode::OK);
  EXPECT_TRUE(agent->Running());
  const std::unique_ptr<Process> named = StartAgent("board", Arguments(other));
  EXPECT_EQ(named->Wait(), 2);
  EXPECT_THAT(named->Log(), HasSubstr("is for 'other'"));
  const std::unique_ptr<Process> tuner = StartAgent("", Arguments(CertificateFor(Role::kTuner, "t")));
  EXPECT_EQ(tuner->Wait(), 2);
  EXPECT_THAT(tuner->Log(), HasSubstr("role agent is needed"));
}

TEST_F(FarmTlsTest, AJobSaysWhoSubmittedItWhateverTheRequestSays) {
  grpc::ClientContext context;
  v1::SubmitJobRequest submit;
  *submit.mutable_spec() = tracker::SpecOf("a");
  submit.mutable_spec()->set_submitted_by("king");
  submit.mutable_spec()->set_submitter("hone://farm/admin/king");
  const auto channel = OpenChannel(address_, CertificateFor(Role::kClient, "ann")).value();
  ASSERT_TRUE(v1::JobService::NewStub(channel)->Submit(&context, submit, &job_).ok());
  EXPECT_EQ(job_.spec().submitted_by(), "ann");
  EXPECT_EQ(job_.spec().submitter(), "hone://farm/client/ann");
}

TEST_F(FarmTlsTest, OnlyAnAdminMayRaiseThePriority) {
  const auto submit = [&](Role role, int priority) {
    const auto channel = OpenChannel(address_, CertificateFor(role, "ann")).value();
    grpc::ClientContext context;
    v1::SubmitJobRequest request;
    *request.mutable_spec() = tracker::SpecOf(fmt::format("{}{}", Name(role), priority), priority);
    return v1::JobService::NewStub(channel)->Submit(&context, request, &job_);
  };
  const grpc::Status refused = submit(Role::kClient, 1);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("omit --priority"));
  EXPECT_TRUE(submit(Role::kClient, -1).ok());
  EXPECT_EQ(job_.spec().priority(), -1);
  EXPECT_TRUE(submit(Role::kAdmin, 1).ok());
  EXPECT_EQ(job_.spec().priority(), 1);
}

// A failure record that contradicts every timing until the year 2255.
v1::Record WrongInTwoCenturies() {
  v1::Record record;
  record.set_id("m/1");
  record.mutable_key()->set_workload_digest(tracker::BatchOf(1).workload_digest());
  record.set_workload(tracker::BatchOf(1).workload());
  record.mutable_key()->set_target("cpu");
  record.mutable_key()->set_device_fingerprint("board");
  record.mutable_key()->set_compiler_version("1");
  record.mutable_outcome()->mutable_failure()->set_kind(v1::FAILURE_KIND_WRONG_OUTPUT);
  record.mutable_time()->set_seconds(9'000'000'000);
  record.set_measured_by("somebody else");
  return record;
}

grpc::StatusCode AppendRecord(const std::shared_ptr<grpc::Channel>& channel, const v1::Record& record) {
  grpc::ClientContext context;
  v1::AppendRecordsRequest request;
  *request.add_records() = record;
  v1::AppendRecordsResponse response;
  return v1::RecordService::NewStub(channel)->Append(&context, request, &response).error_code();
}

std::vector<v1::Record> AllRecords(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  v1::QueryRecordsResponse response;
  EXPECT_TRUE(v1::RecordService::NewStub(channel)->Query(&context, v1::QueryRecordsRequest(), &response).ok());
  return {response.records().begin(), response.records().end()};
}

TEST_F(FarmProcessTest, RecordsHaveNoTimeInTheFuture) {
  StartTracker();
  Connect();
  ASSERT_EQ(AppendRecord(channel_, WrongInTwoCenturies()), grpc::StatusCode::OK);
  const std::vector<v1::Record> records = AllRecords(channel_);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_LT(records[0].time().seconds(), absl::ToUnixSeconds(absl::Now()) + 3600);
  EXPECT_EQ(records[0].measured_by(), "somebody else");
}

TEST_F(FarmTlsTest, ATunerMayRecordOnlyCandidatesThatCouldNotBeBuilt) {
  using enum grpc::StatusCode;
  const auto channel = OpenChannel(address_, CertificateFor(Role::kTuner, "t")).value();
  v1::Record record = WrongInTwoCenturies();
  EXPECT_EQ(AppendRecord(channel, record), PERMISSION_DENIED);
  record.mutable_outcome()->mutable_failure()->set_kind(v1::FAILURE_KIND_COMPILE_ERROR);
  record.set_workload("of others");
  EXPECT_EQ(AppendRecord(channel, record), INVALID_ARGUMENT);
  EXPECT_TRUE(AllRecords(channel).empty());
  record.set_workload(tracker::BatchOf(1).workload());
  EXPECT_EQ(AppendRecord(channel, record), OK);
  const std::vector<v1::Record> records = AllRecords(channel);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].measured_by(), "t");
  EXPECT_LT(records[0].time().seconds(), absl::ToUnixSeconds(absl::Now()) + 3600);
}

TEST_F(FarmTlsTest, ATunerLeasesUnderItsNameAndReportsNoTimes) {
  const auto channel = OpenChannel(address_, CertificateFor(Role::kTuner, "t")).value();
  const auto lease_as = [&](const std::string& tuner_id) {
    grpc::ClientContext context;
    v1::LeaseJobRequest request;
    v1::LeaseJobResponse response;
    request.set_protocol_version(v1::PROTOCOL_VERSION_1);
    request.set_tuner_id(tuner_id);
    return v1::TunerService::NewStub(channel)->LeaseJob(&context, request, &response).error_code();
  };
  EXPECT_EQ(lease_as("t"), grpc::StatusCode::OK);
  EXPECT_EQ(lease_as("t/17"), grpc::StatusCode::OK);
  EXPECT_EQ(lease_as("t2"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(lease_as("other/t"), grpc::StatusCode::PERMISSION_DENIED);
  grpc::ClientContext context;
  v1::AppendRecordsRequest append;
  v1::AppendRecordsResponse response;
  append.add_records()->mutable_outcome()->mutable_timing()->add_seconds(1e-9);
  EXPECT_EQ(v1::RecordService::NewStub(channel)->Append(&context, append, &response).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(FarmProcessTest, TunerRemovesFoldersOfKilledBuilders) {
  namespace fs = std::filesystem;
  StartTracker();
  const std::string before = fs::temp_directory_path();
  std::vector<fs::path> left;
  for (const fs::path& parent : {folder_.path(), fs::path("/dev/shm")}) {
    left.push_back(parent / fmt::format("hone-tmp-left-{}", getpid()));
    std::error_code error;  // the folder may be missing on this system
    if (!fs::create_directory(left.back(), error)) left.pop_back();
  }
  ASSERT_FALSE(left.empty());
  for (const fs::path& path : left) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  setenv("TMPDIR", folder_.path().c_str(), 1);
  const std::unique_ptr<Process> tuner = StartTuner();
  setenv("TMPDIR", before.c_str(), 1);
  const auto is_there = [](const fs::path& path) { return fs::exists(path); };
  EXPECT_TRUE(Eventually([&] { return std::ranges::none_of(left, is_there); })) << tuner->Log();
  for (const fs::path& path : left) fs::remove(path);
}

// After a long absence the tuner calls rarely, and gRPC advances a connection only during calls. A TLS handshake needs
// several messages, so it would not finish in time if each waited for the next call.
TEST_F(FarmTlsTest, ATunerFindsATrackerThatWasAwayForLong) {
  std::vector<std::string> arguments = {HONE_TUNER_BINARY, "--tracker", address_, "--build-workers", "1"};
  for (const std::string& more : Arguments(CertificateFor(Role::kTuner, "t"))) arguments.push_back(more);
  const Process tuner(arguments, folder_ / "tuner.log");
  const std::string address = address_;
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  std::this_thread::sleep_for(std::chrono::seconds(15));  // the tuner's pauses between calls grow meanwhile
  StartTracker(address, {"--pki", folder_ / "tracker"});
  Connect(CertificateFor(Role::kAdmin, "a"));
  job_ = SubmitJob(tracker::SpecOf("a"));
  EXPECT_TRUE(Eventually([&] { return tuner.Log().find("job " + job_.id()) != std::string::npos; })) << tuner.Log();
}

// Two devices of one agent: each must get only the work that it can run, and the sandbox must let the driver work.
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
  on_opencl.set_artifact(agent::kOpenClKernels);
  on_opencl.mutable_requirements()->set_architecture("opencl");
  on_opencl.mutable_policy()->set_timeout_seconds(3);  // the driver compiles at the first call
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
