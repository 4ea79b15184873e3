// SPDX-License-Identifier: Apache-2.0
// Joining a farm, renewing a certificate and being revoked, with the real programs hone, hone-tracker and hone-agent.

#include "pki/join.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpc/grpc_security.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "files/transfer.h"
#include "hone/v1/identity.grpc.pb.h"
#include "hone/v1/job.grpc.pb.h"
#include "pki/identity_folder.h"
#include "pki/token.h"
#include "pki/tracker_folder.h"
#include "tests/farm/builders.h"
#include "tests/farm/methods.h"
#include "tests/farm/processes.h"
#include "tests/farm/relay.h"
#include "tests/unit/graph/model_builder.h"
#include "tracker/access.h"
#include "transport/transport.h"

namespace hone::farm {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class JoinTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_CONFIG_HOME", (folder_ / "config").c_str(), 1);
    ASSERT_EQ(Hone({"pki", "init", "--dir", folder_ / "pki", "--tracker", "localhost:9190"}), 0) << said_;
    setenv("HONE_IDENTITY", (folder_ / "pki" / "admin").c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"XDG_CONFIG_HOME", "HONE_IDENTITY", "HONE_TRACKER"}) unsetenv(name);
  }
  void StartTracker(const std::string& life = "30d") {
    const std::filesystem::path port = folder_ / "port";
    std::filesystem::remove(port);
    tracker_ = std::make_unique<Process>(
        std::vector<std::string>{HONE_TRACKER_BINARY, "--listen", "localhost:0", "--records", folder_ / "records",
                                 "--port-file", port, "--pki", folder_ / "pki", "--certificate-life", life},
        folder_ / "tracker.log");
    ASSERT_TRUE(Eventually([&] { return std::ifstream(port).good() || !tracker_->Running(); }));
    std::ifstream(port) >> address_;
    ASSERT_FALSE(address_.empty()) << tracker_->Log();
    setenv("HONE_TRACKER", address_.c_str(), 1);
  }
  // Runs a program to its end and returns its exit status. Its output is in said_.
  int RunProgram(std::vector<std::string> arguments) {
    const std::string log = folder_ / "said.log";
    std::filesystem::remove(log);
    Process process(arguments, log);
    const int status = process.Wait();
    said_ = process.Log();
    return status;
  }
  int Hone(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HONE_BINARY);
    return RunProgram(std::move(arguments));
  }
  json HoneJson(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    EXPECT_EQ(Hone(std::move(arguments)), 0) << said_;
    return json::parse(said_, nullptr, false);
  }
  std::string Token(const std::string& role, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"token", "create", "--role", role};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return HoneJson(arguments).value("token", "");
  }
  // Joins with `hone join` into the folder of that name, as `hone-agent join` does.
  int Join(const std::string& token, const std::string& folder, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {HONE_BINARY, "join",       address_,        "--token",
                                          token,       "--identity", folder_ / folder};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments);
  }
  TlsFiles Files(const std::string& folder) const { return pki::FilesIn(folder_ / folder); }
  json Identity(const std::string& name) {
    const json list = HoneJson({"identity", "list"});
    for (const json& identity : list["identities"]) {
      if (identity["name"] == name) return identity;
    }
    return json::object();
  }
  std::string Devices() { return HoneJson({"devices"}).dump(); }
  static grpc::Status Call(const std::string& method, const std::shared_ptr<grpc::Channel>& channel,
                           bool* resumed = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    const grpc::Slice nothing;
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer response;
    std::promise<grpc::Status> done;
    grpc::GenericStub stub(channel);
    stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                   [&done](const grpc::Status& status) { done.set_value(status); });
    grpc::Status status = done.get_future().get();
    if (resumed == nullptr) return status;
    const auto property = context.auth_context()->FindPropertyValues("ssl_session_reused");
    *resumed = !property.empty() && property[0] == "true";
    return status;
  }
  grpc::Status Call(const std::string& method, const std::string& folder) {
    return Call(method, OpenChannel(address_, Files(folder)).value());
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::unique_ptr<Process> tracker_;
  std::string address_, said_;
};

constexpr char kListDevices[] = "/hone.v1.AdminService/ListDevices";

TEST_F(JoinTest, AMachineJoinsOnceAndNeedsNoFlagsFromThenOn) {
  StartTracker();
  const std::string token = Token("agent");
  ASSERT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--token", token, "--name", "board", "--label", "rpi4"}),
            0)
      << said_;
  EXPECT_THAT(said_, HasSubstr("joined as 'board'"));
  const std::filesystem::path own = folder_ / "config" / "hone" / "agent";
  struct stat facts{};
  ASSERT_EQ(stat(own.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  ASSERT_EQ(stat((own / "identity.pem").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  Process agent({HONE_AGENT_BINARY}, folder_ / "agent.log");
  ASSERT_TRUE(Eventually([&] { return Devices().find("\"board\"") != std::string::npos; })) << agent.Log();
  EXPECT_EQ(Identity("board").value("state", ""), "good");
  // The agent has an identity already. A second one would leave the first name unused in the register.
  EXPECT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--token", Token("agent")}), 1);
  EXPECT_THAT(said_, HasSubstr("joined already as 'board' at " + address_ + ": " + own.string()));
  EXPECT_THAT(said_, HasSubstr("hone identity revoke board"));
  EXPECT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--token", token, "--label", "rpi,4"}), 2);
  EXPECT_THAT(said_, HasSubstr("--label 'rpi,4': write NAME or NAME=VALUE"));
}

// Root joins for another user, into a folder that this machine's service does not read.
TEST_F(JoinTest, AnIdentityOutsideTheServiceIsNotReportedAsRunning) {
  if (getuid() != 0) GTEST_SKIP() << "only root joins for others";
  StartTracker();
  const std::filesystem::path config = folder_ / "agent.conf", own = folder_ / "of-nobody";
  ASSERT_EQ(chmod(folder_.path().c_str(), 0711), 0);
  ASSERT_EQ(mkdir(own.c_str(), 0700), 0);
  ASSERT_EQ(chown(own.c_str(), 65534, 65534), 0);
  const std::string identity = own / "identity";
  std::ofstream(config) << fmt::format("user = \"nobody\"\nidentity = \"{}\"\n", identity);
  ASSERT_EQ(RunProgram({HONE_AGENT_BINARY, "--config", config, "join", address_, "--token", Token("agent")}), 0)
      << said_;
  EXPECT_THAT(said_, HasSubstr("start the agent with: hone-agent --identity " + identity + "    # as user nobody"));
  EXPECT_THAT(said_, Not(HasSubstr("the service")));
}

// A token on the command line can be read by other users of the machine.
TEST_F(JoinTest, ATokenNeedNotBeOnTheCommandLine) {
  StartTracker();
  const std::string file = folder_ / "token";
  std::ofstream(file) << Token("viewer") << "\n";
  EXPECT_EQ(Hone({"join", address_, "--token-file", file, "--name", "ann", "--identity", folder_ / "ann", "--json"}), 0)
      << said_;
  EXPECT_EQ(json::parse(said_), json({{"role", "viewer"}, {"name", "ann"}, {"identity", (folder_ / "ann").string()}}));
  std::ofstream(file) << Token("client") << "\n";
  const std::string join = fmt::format("{} join {} --token-file - --name bob --identity {} < {}", HONE_BINARY, address_,
                                       (folder_ / "bob").string(), file);
  EXPECT_EQ(RunProgram({"/bin/sh", "-c", join}), 0) << said_;
  setenv("HONE_TOKEN", Token("agent").c_str(), 1);
  EXPECT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--name", "board"}), 0) << said_;
  unsetenv("HONE_TOKEN");
  for (const char* name : {"ann", "bob", "board"}) EXPECT_EQ(Identity(name).value("state", ""), "good") << name;
  EXPECT_EQ(Hone({"join", address_}), 2);
  EXPECT_THAT(said_, HasSubstr("the token is missing: give a file with --token-file"));
  EXPECT_EQ(Hone({"token", "create", "--role", "agent"}), 0);
  EXPECT_THAT(said_, HasSubstr("hone-agent join " + address_ + " --token-file -\n"));
  EXPECT_THAT(said_, Not(HasSubstr("--token ")));
}

TEST_F(JoinTest, AnInvalidTokenIsRefused) {
  StartTracker();
  const std::string token = Token("viewer");
  ASSERT_EQ(Join(token, "ann", {"--name", "ann"}), 0) << said_;
  EXPECT_TRUE(Call(kListDevices, "ann").ok());
  EXPECT_EQ(Join(token, "bob"), 1);
  EXPECT_THAT(said_, HasSubstr("was used already"));
  const std::string brief = Token("viewer", {"--expires", "1ms"});
  EXPECT_EQ(Join(brief, "bob"), 1);
  EXPECT_THAT(said_, HasSubstr("has expired"));
  pki::Token guessed = pki::ParseToken(token).value();
  guessed.secret = pki::RandomSecret();
  EXPECT_EQ(Join(pki::Print(guessed), "bob"), 1);
  EXPECT_THAT(said_, HasSubstr("this farm does not know the token"));
  const json revoked = HoneJson({"token", "create", "--role", "viewer"});
  ASSERT_EQ(Hone({"token", "revoke", revoked["id"]}), 0) << said_;
  EXPECT_EQ(Join(revoked["token"], "bob"), 1);
  EXPECT_THAT(said_, HasSubstr("was revoked"));
  EXPECT_EQ(Hone({"token", "create", "--role", "guest"}), 2);
  EXPECT_THAT(said_, HasSubstr("there is no such role"));
  EXPECT_EQ(Join("viewer.abc", "bob"), 2);
  EXPECT_THAT(said_, HasSubstr("the token is incomplete"));
  EXPECT_FALSE(std::filesystem::exists(Files("bob").identity));
  ASSERT_EQ(Join(Token("viewer"), "bob", {"--name", "bob"}), 0) << "a refusal leaves nothing in the way: " << said_;
}

TEST_F(JoinTest, ABrokenConnectionUsesUpNoToken) {
  StartTracker();
  const std::string token = Token("viewer");
  // The first connection asks for the authority; the token goes over the second one.
  const Relay relay(std::stoi(address_.substr(address_.rfind(':') + 1)), 1);
  address_ = fmt::format("localhost:{}", relay.port());
  EXPECT_EQ(Join(token, "ann"), 0) << said_;
  EXPECT_GE(relay.connections(), 3) << said_;
}

// A client tries several addresses one after the other, but a call does not wait for a second attempt to connect.
TEST_F(JoinTest, ATrackerThatIsFarAwayAnswers) {
  StartTracker();
  const Relay relay(std::stoi(address_.substr(address_.rfind(':') + 1)), -1, std::chrono::milliseconds(100));
  setenv("HONE_TRACKER", fmt::format("localhost:{}", relay.port()).c_str(), 1);
  EXPECT_EQ(Hone({"devices"}), 0) << said_;
}

TEST_F(JoinTest, DoctorExitStatusReflectsTheTrackersAnswer) {
  StartTracker();
  ASSERT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--token", Token("agent"), "--name", "board"}), 0)
      << said_;
  const auto examine = [&](const std::string& program, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {program, "doctor", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const int status = RunProgram(arguments);
    const size_t begin = said_.find('{');  // problems are also printed to standard error
    const json found = json::parse(said_.substr(begin, said_.rfind('}') - begin + 1), nullptr, false);
    EXPECT_EQ(status, found.value("fine", false) ? 0 : 1) << said_;
    std::map<std::string, std::string> verdicts;
    for (const json& check : found["checks"]) verdicts[check["check"]] = check["verdict"];
    return verdicts;
  };
  auto agent = examine(HONE_AGENT_BINARY);
  EXPECT_EQ(agent["identity"], "good") << said_;
  EXPECT_EQ(agent["certificate"], "good") << said_;
  EXPECT_EQ(agent["tracker"], "good") << said_;
  EXPECT_EQ(agent.count("governor"), 1u);
  auto admin = examine(HONE_BINARY, {"--tracker", address_});
  EXPECT_EQ(admin["tracker"], "good") << said_;
  tracker_.reset();
  agent = examine(HONE_AGENT_BINARY);
  EXPECT_EQ(agent["tracker"], "bad") << said_;
}

TEST_F(JoinTest, AProgramOfALaterProtocolIsToldToUpdateTheTracker) {
  StartTracker();
  ASSERT_EQ(Join(Token("viewer"), "ann", {"--name", "ann"}), 0) << said_;
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = pki::ReadFile(Files("ann").authority).value();
  tls.pem_private_key = tls.pem_cert_chain = pki::ReadFile(Files("ann").identity).value();
  grpc::ChannelArguments later;
  later.SetUserAgentPrefix("hone-protocol/2");
  const grpc::Status status = Call(kListDevices, grpc::CreateCustomChannel(address_, grpc::SslCredentials(tls), later));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("update the tracker"));
}

TEST_F(JoinTest, ATokenGivesItsRoleAndNoTakenName) {
  StartTracker();
  ASSERT_EQ(Join(Token("viewer"), "ann", {"--name", "ann"}), 0) << said_;
  const std::string token = Token("client", {"--uses", "2"});
  EXPECT_EQ(Join(token, "bob", {"--name", "ann"}), 1);
  EXPECT_THAT(said_, HasSubstr("the name 'ann' is taken; choose another"));
  EXPECT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--token", token}), 2);
  EXPECT_THAT(said_, HasSubstr("the token is for role client"));
  pki::Token posing = pki::ParseToken(token).value();
  posing.role = Role::kAdmin;
  EXPECT_EQ(Join(pki::Print(posing), "bob", {"--name", "bob"}), 1);
  EXPECT_THAT(said_, HasSubstr("the token is for role client, not for role admin"));
  EXPECT_EQ(Join(Token("client", {"--name", "bob"}), "bob", {"--name", "eve"}), 1);
  EXPECT_THAT(said_, HasSubstr("is for the name 'bob'"));
  ASSERT_EQ(Join(token, "bob", {"--name", "carl"}), 0) << said_;
  EXPECT_THAT(Call("/hone.v1.AdminService/Drain", "bob").error_message(), HasSubstr("role client may not call"));
}

// A server that poses as the tracker must not receive the token.
TEST_F(JoinTest, ATrackerOfAnotherFarmIsNotTrusted) {
  StartTracker();
  pki::Token token = pki::ParseToken(Token("viewer")).value();
  token.fingerprint = pki::RandomSecret();
  EXPECT_EQ(Join(pki::Print(token), "ann"), 1);
  EXPECT_THAT(said_, HasSubstr("so the token was not sent"));
  tracker_->Signal(SIGTERM);
  tracker_->Wait();
  EXPECT_EQ(Join(pki::Print(token), "bob"), 1);
  EXPECT_THAT(said_, HasSubstr("no server answers"));
}

TEST_F(JoinTest, WithoutACertificateOnlyJoinIsAllowed) {
  StartTracker();
  const auto channel = OpenAnonymousChannel(address_, pki::ReadFile(Files("pki").authority).value()).value();
  for (const std::string& method : AllMethods()) {
    const grpc::Status status = Call(method, channel);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_THAT(status.error_message(),
                HasSubstr(method == tracker::kJoinMethod ? "this farm does not know the token" : "join"))
        << method;
  }
  EXPECT_EQ(Call("/grpc.health.v1.Health/Check", channel).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  // A valid token is accepted however many wrong ones came before.
  while (Call(std::string(tracker::kJoinMethod), channel).error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) {
  }
  EXPECT_EQ(Join(Token("viewer"), "ann"), 0) << said_;
}

TEST_F(JoinTest, WrongCertificatesAreRefusedByATrackerThatLetsMachinesJoin) {
  StartTracker();
  const absl::Time now = absl::Now();
  const pki::Authority foreign = pki::Authority::Make({now - absl::Hours(1), now + absl::Hours(1)}).value();
  ASSERT_TRUE(pki::IssueIdentity(foreign, folder_ / "foreign", {Role::kAdmin, "eve"}, address_, now).ok());
  TlsFiles files = Files("foreign");
  files.authority = Files("pki").authority;
  EXPECT_EQ(Call(kListDevices, OpenChannel(address_, files).value()).error_code(), grpc::StatusCode::UNAVAILABLE);
  const auto authority = pki::ReadAuthority(folder_ / "pki").value();
  ASSERT_TRUE(
      pki::IssueIdentity(*authority, folder_ / "old", {Role::kAdmin, "old"}, address_, now - absl::Hours(24 * 366))
          .ok());
  EXPECT_EQ(Call(kListDevices, "old").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(JoinTest, ARevokedAgentIsRefusedAtOnceAndMayJoinAgain) {
  StartTracker();
  ASSERT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--token", Token("agent"), "--name", "board"}), 0)
      << said_;
  Process agent({HONE_AGENT_BINARY}, folder_ / "agent.log");
  ASSERT_TRUE(Eventually([&] { return Devices().find("\"board\"") != std::string::npos; })) << agent.Log();
  ASSERT_EQ(Hone({"identity", "revoke", "board"}), 0) << said_;
  EXPECT_EQ(agent.Wait(), 1);  // a call is normally held for up to 20 seconds; this one must end at once
  EXPECT_THAT(agent.Log(), HasSubstr(": the certificate of 'board' was revoked"));
  EXPECT_THAT(agent.Log(), Not(HasSubstr("stopping on signal")));
  EXPECT_EQ(Identity("board").value("state", ""), "revoked");
  std::filesystem::remove_all(folder_ / "config");
  EXPECT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--token", Token("agent"), "--name", "board"}), 0)
      << said_;
  EXPECT_EQ(Identity("board").value("state", ""), "good");
}

TEST_F(JoinTest, ACallThatWaitsEndsWhenItsCallerIsRevoked) {
  StartTracker();
  ASSERT_EQ(Join(Token("client"), "ann", {"--name", "ann"}), 0) << said_;
  const auto jobs = v1::JobService::NewStub(OpenChannel(address_, Files("ann")).value());
  v1::SubmitJobRequest submit;
  *submit.mutable_spec() = tracker::SpecOf("a");
  v1::WatchJobRequest watch;
  {
    grpc::ClientContext context;
    v1::Job job;
    ASSERT_TRUE(jobs->Submit(&context, submit, &job).ok());
    watch.set_job_id(job.id());
  }
  watch.set_after_sequence(INT64_MAX);
  watch.mutable_max_wait()->set_seconds(20);
  const auto waiting = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::WatchJobResponse response;
    return jobs->Watch(&context, watch, &response).error_code();
  });
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(2)), std::future_status::timeout);
  ASSERT_EQ(Hone({"identity", "revoke", "ann"}), 0) << said_;
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  grpc::ClientContext context;
  v1::WatchJobResponse response;
  EXPECT_EQ(jobs->Watch(&context, watch, &response).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

// A resumed TLS session verifies no certificate, so the tracker must check the register at every call.
TEST_F(JoinTest, AnOldTlsSessionIsRefusedAfterARevocation) {
  StartTracker();
  ASSERT_EQ(Join(Token("viewer"), "ann", {"--name", "ann"}), 0) << said_;
  const std::unique_ptr<grpc_ssl_session_cache, void (*)(grpc_ssl_session_cache*)> cache(
      grpc_ssl_session_cache_create_lru(4), grpc_ssl_session_cache_destroy);
  const auto connect = [&] {
    const std::string identity = pki::ReadFile(Files("ann").identity).value();
    const grpc::SslCredentialsOptions options{pki::ReadFile(Files("ann").authority).value(), identity, identity};
    const grpc_arg sessions = grpc_ssl_session_cache_create_channel_arg(cache.get());
    grpc::ChannelArguments arguments;
    arguments.SetPointerWithVtable(sessions.key, sessions.value.pointer.p, sessions.value.pointer.vtable);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address_, grpc::SslCredentials(options), arguments);
  };
  bool resumed = false;
  EXPECT_TRUE(Call(kListDevices, connect(), &resumed).ok());
  EXPECT_TRUE(Call(kListDevices, connect(), &resumed).ok());
  EXPECT_TRUE(resumed) << "else this test tests nothing";
  ASSERT_EQ(Hone({"identity", "revoke", "ann"}), 0) << said_;
  const grpc::Status status = Call(kListDevices, connect(), &resumed);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("'ann' was revoked"));
}

TEST_F(JoinTest, AgentRenewsItsCertificateWhileRunning) {
  StartTracker("6s");
  ASSERT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--token", Token("agent"), "--name", "board"}), 0)
      << said_;
  const std::filesystem::path own = folder_ / "config" / "hone" / "agent";
  const std::string first = pki::ReadFile(pki::FilesIn(own).identity).value();
  Process agent({HONE_AGENT_BINARY}, folder_ / "agent.log");
  const auto first_facts = pki::ReadCertificate(first).value();
  ASSERT_TRUE(Eventually([&] { return Identity("board").value("serial", first_facts.serial) != first_facts.serial; }))
      << agent.Log();
  EXPECT_TRUE(Eventually([&] { return pki::ReadFile(pki::FilesIn(own).identity).value() != first; })) << agent.Log();
  EXPECT_THAT(Identity("board").value("vouched_by", ""), EndsWith(" of admin")) << "as for the first one";
  absl::SleepFor(first_facts.until + absl::Seconds(1) - absl::Now());
  EXPECT_TRUE(agent.Running()) << agent.Log();
  // The agent's first self-test may wait for other measurements on this machine.
  EXPECT_TRUE(Eventually([&] { return Devices().find("\"idle\"") != std::string::npos; })) << agent.Log();
  // The renewed certificate replaces the old one, which is refused without having been revoked.
  std::filesystem::create_directory(folder_ / "thief");
  std::ofstream(Files("thief").identity) << first;
  std::filesystem::copy(pki::FilesIn(own).authority, Files("thief").authority);
  EXPECT_EQ(Call("/grpc.health.v1.Health/Check", "thief").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(JoinTest, ATrackerShowsItsNewCertificateWithoutARestart) {
  StartTracker();
  const std::string port = address_.substr(address_.rfind(':'));
  const auto call = [&] {
    return Call(kListDevices, OpenChannel("127.0.0.1" + port, Files("pki/admin")).value()).error_code();
  };
  EXPECT_EQ(call(), grpc::StatusCode::UNAVAILABLE) << "its certificate has no such name";
  const auto authority = pki::ReadAuthority(folder_ / "pki").value();
  ASSERT_TRUE(pki::WriteTrackerIdentity(folder_ / "pki", *authority, {"localhost", "127.0.0.1"}, absl::Now()).ok());
  EXPECT_TRUE(Eventually([&] { return call() == grpc::StatusCode::OK; }));
}

TEST_F(JoinTest, TheAuditLogHoldsChangesAndRefusals) {
  StartTracker();
  ASSERT_EQ(Join(Token("viewer"), "ann", {"--name", "ann"}), 0) << said_;
  EXPECT_FALSE(Call("/hone.v1.AdminService/Drain", "ann").ok());
  EXPECT_FALSE(Call("/hone.v1.IdentityService/ListAudit", "ann").ok());
  ASSERT_EQ(Hone({"drain", "board"}), 0) << said_;
  EXPECT_THAT(said_,
              HasSubstr("the farm has no agent 'board' yet; an agent of that name will get no work when it joins"));
  Devices();
  const json entries = HoneJson({"audit"})["entries"];
  const auto find = [&](const std::string& method) {
    for (const json& entry : entries) {
      if (entry["method"] == method)
        return entry["name"].get<std::string>() + ": " + entry["result"].get<std::string>();
    }
    return std::string();
  };
  EXPECT_EQ(find("IdentityService/CreateToken"), "admin: ok");
  EXPECT_EQ(find("JoinService/Join"), ": ok");
  EXPECT_EQ(find("AdminService/Drain"), "admin: ok");
  EXPECT_THAT(find("IdentityService/ListAudit"), HasSubstr("ann: a certificate of role viewer may not call"));
  EXPECT_EQ(find("AdminService/ListDevices"), "") << "who only reads is not in it";
  EXPECT_EQ(entries[0]["object"], "board");
  EXPECT_THAT(entries[0]["peer"].get<std::string>(), HasSubstr("ip"));
}

TEST_F(JoinTest, OnlyThoseWhoHaveAFileAndAdminsFetchIt) {
  StartTracker();
  for (const std::string role : {"client", "viewer", "tuner", "agent"}) {
    ASSERT_EQ(Join(Token(role), role, {"--name", role + "1"}), 0) << said_;
  }
  ASSERT_EQ(Join(Token("client"), "other", {"--name", "client2"}), 0) << said_;
  const auto transfer = [&](const std::string& folder) {
    const auto channel = OpenChannel(address_, Files(folder)).value();
    return files::FileTransfer([channel] { return channel; });
  };
  const std::string contents(size_t{9} << 20, 'x'), path = folder_ / "model.hone";
  std::ofstream(path) << contents;
  EXPECT_TRUE(absl::IsPermissionDenied(transfer("viewer").Upload(path).status()));
  const auto name = transfer("client").Upload(path);
  ASSERT_TRUE(name.ok()) << name.status();
  std::string fetched;
  const auto write = [&](std::string_view piece) { return fetched.append(piece), absl::OkStatus(); };
  for (const char* role : {"client", "pki/admin"}) {
    fetched.clear();
    ASSERT_TRUE(transfer(role).DownloadTo(*name, write).ok()) << role;
    EXPECT_EQ(fetched, contents);
  }
  for (const char* role : {"viewer", "tuner", "agent", "other"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(transfer(role).DownloadTo(*name, write))) << role;
  }
  // A job does not give its submitter a right to the files that it names.
  const auto submit = [&](const std::string& folder, int64_t bytes) {
    grpc::ClientContext context;
    v1::SubmitJobRequest request;
    request.mutable_spec()->set_request_id(folder + std::to_string(bytes));
    request.mutable_spec()->set_name("model.hone");
    *request.mutable_spec()->mutable_run()->add_packages() = *name;
    request.mutable_spec()->mutable_run()->mutable_packages(0)->set_bytes(bytes);
    v1::Job job;
    const auto channel = OpenChannel(address_, Files(folder)).value();
    return v1::JobService::NewStub(channel)->Submit(&context, request, &job);
  };
  const grpc::Status foreign = submit("other", name->bytes());
  EXPECT_EQ(foreign.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(foreign.error_message(), HasSubstr("'model.hone' was not sent to the tracker by you"));
  const grpc::Status wrong_size = submit("client", 1);
  EXPECT_EQ(wrong_size.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(wrong_size.error_message(), HasSubstr("has 9437184 bytes in the store, not 1"));
  EXPECT_TRUE(submit("client", name->bytes()).ok());
  ASSERT_TRUE(transfer("other").Upload(path).ok());
  EXPECT_TRUE(submit("other", name->bytes()).ok()) << "it has the file, too";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "records.farm.files" / name->digest()));
  const json entries = HoneJson({"audit"})["entries"];
  const auto stored = std::ranges::find(entries, "FileService/Put", [](const json& entry) { return entry["method"]; });
  ASSERT_NE(stored, entries.end()) << entries.dump();
  EXPECT_EQ((*stored)["name"], "client1");
  EXPECT_EQ((*stored)["object"], name->digest());
  EXPECT_EQ((*stored)["result"], "ok");
}

TEST_F(JoinTest, TheOutputsOfARunAreThoseOfItsSubmitter) {
  StartTracker();
  ASSERT_EQ(RunProgram({HONE_AGENT_BINARY, "join", address_, "--token", Token("agent"), "--name", "board"}), 0)
      << said_;
  for (const std::string name : {"ann", "bob"}) ASSERT_EQ(Join(Token("client"), name, {"--name", name}), 0) << said_;
  Process agent({HONE_AGENT_BINARY, "--threads", "1"}, folder_ / "agent.log");
  ASSERT_TRUE(Eventually([&] { return Devices().find("\"idle\"") != std::string::npos; })) << agent.Log();
  graph::GraphBuilder b;
  b.Input("x", {2, 2}).Node("Exp", {"x"}, {"y"}).Output("y");
  std::ofstream(folder_ / "exp.onnx") << b.Model();
  ASSERT_EQ(RunProgram({"/usr/bin/python3", "-c",
                        fmt::format("import numpy; numpy.savez('{}', x=numpy.ones((2, 2), numpy.float32))",
                                    std::string(folder_ / "in.npz"))}),
            0)
      << said_;
  ASSERT_EQ(Hone({"run", folder_ / "exp.onnx", "--input", folder_ / "in.npz", "--output", folder_ / "out.npz",
                  "--device", "board", "--identity", folder_ / "ann"}),
            0)
      << said_ << agent.Log();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out.npz")) << "ann has fetched them";
  const json jobs = HoneJson({"jobs", "--all"})["jobs"];
  ASSERT_EQ(jobs.size(), 1u);
  const json job = HoneJson({"jobs", jobs[0]["job"]})["jobs"][0];
  v1::FileName name;
  name.set_digest(job["run"]["packages"][0]["outputs"]["digest"]);
  const auto fetch = [&](const std::string& folder) {
    const auto channel = OpenChannel(address_, Files(folder)).value();
    return files::FileTransfer([channel] { return channel; }).DownloadTo(name, [](std::string_view) {
      return absl::OkStatus();
    });
  };
  EXPECT_TRUE(fetch("ann").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(fetch("bob")));
  // They count against the quota of ann.
  std::ifstream list(folder_ / "records.farm.files" / (name.digest() + ".chunks"));
  const std::string text((std::istreambuf_iterator<char>(list)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr("\nowner hone://farm/client/ann\n"));
}

TEST_F(JoinTest, AnAuthorityIsMadeOnce) {
  EXPECT_EQ(Hone({"pki", "init", "--dir", folder_ / "pki", "--tracker", "localhost:9190"}), 1);
  EXPECT_THAT(said_, HasSubstr("would lock out all programs that joined"));
  EXPECT_EQ(Hone({"pki", "issue", "--dir", folder_ / "pki", "--role", "admin", "--name", "second", "--identity",
                  folder_ / "second", "--tracker", "localhost:9190"}),
            0)
      << said_;
  StartTracker();
  EXPECT_TRUE(Call("/hone.v1.IdentityService/ListTokens", "second").ok());
  EXPECT_THAT(HoneJson({"token", "list"}).dump(), Not(HasSubstr("error")));
}

}  // namespace
}  // namespace hone::farm
