// SPDX-License-Identifier: Apache-2.0
// The tracker's HTTP server in the real program: on loopback with a key, and over TLS with certificates and sessions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "hone/v1/identity.grpc.pb.h"
#include "hone/v1/job.grpc.pb.h"
#include "pki/identity_folder.h"
#include "pki/tracker_folder.h"
#include "tests/farm/builders.h"
#include "tests/farm/processes.h"
#include "tests/unit/tracker/http/http_client.h"
#include "tracker/http/server.h"
#include "transport/transport.h"

namespace hone::farm {
namespace {

using ::testing::HasSubstr;
using tracker::HttpClient;
using tracker::HttpReply;

class HttpTest : public testing::Test {
 protected:
  void Start(const std::string& listen, const std::vector<std::string>& more) {
    std::filesystem::remove(folder_ / "port");
    std::vector<std::string> arguments = {HONE_TRACKER_BINARY, "--listen",          listen,
                                          "--records",         folder_ / "records", "--port-file",
                                          folder_ / "port",    "--http-file",       folder_ / "url"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    tracker_ = std::make_unique<Process>(arguments, folder_ / "log");
    ASSERT_TRUE(Eventually([&] { return std::ifstream(folder_ / "port").good() || !tracker_->Running(); }));
    std::ifstream(folder_ / "port") >> address_;
    std::ifstream(folder_ / "url") >> url_;
    ASSERT_FALSE(url_.empty()) << tracker_->Log();
    port_ = std::atoi(url_.substr(url_.rfind(':') + 1).c_str());
  }
  void StartOnSocket() { Start("unix:" + (folder_ / "socket").string(), {"--http", "127.0.0.1:0"}); }
  void StartWithTls() { Start("localhost:0", {"--pki", folder_ / "pki", "--http", "127.0.0.1:0"}); }
  void MakePki() {
    ASSERT_TRUE(pki::MakeTrackerFolder(folder_ / "pki", {"localhost"}, absl::Now()).ok());
    const auto authority = pki::ReadAuthority(folder_ / "pki").value();
    ASSERT_TRUE(
        pki::IssueIdentity(*authority, folder_ / "admin", {Role::kAdmin, "ann"}, "localhost:1", absl::Now()).ok());
  }
  TlsFiles Files(const std::string& folder) const { return pki::FilesIn(folder_ / folder); }
  TlsFiles Nobody() const { return {.identity = "", .authority = Files("pki").authority}; }
  std::string NewToken(const std::string& role) {
    grpc::ClientContext context;
    v1::CreateTokenRequest request;
    request.set_role(role);
    v1::CreateTokenResponse response;
    const grpc::Status status = v1::IdentityService::NewStub(OpenChannel(address_, Files("admin")).value())
                                    ->CreateToken(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return role + "." + response.secret() + "." + response.fingerprint();
  }
  // Exchanges the token for a session. Returns the Cookie header that a browser would send from then on.
  std::string Session(const std::string& token) {
    HttpReply reply =
        HttpClient(port_, Nobody())
            .Ask("POST", "/api/v1/session", "Content-Type: application/json\r\n", R"({"token": ")" + token + "\"}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    const std::string cookie = reply.headers["set-cookie"];
    return "Cookie: " + cookie.substr(0, cookie.find(';')) + "\r\n";
  }
  HttpReply Ask(const std::string& method, const std::string& target, const std::string& headers) {
    return HttpClient(port_, Nobody()).Ask(method, target, headers);
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::unique_ptr<Process> tracker_;
  std::string address_, url_;
  int port_ = 0;
};

TEST_F(HttpTest, OnLoopbackTheAddressHasTheKey) {
  StartOnSocket();
  EXPECT_THAT(url_, testing::StartsWith("http://127.0.0.1:"));
  struct stat facts{};
  ASSERT_EQ(stat((folder_ / "url").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_THAT(tracker_->Log(), HasSubstr("dashboard at " + url_.substr(0, url_.find('#'))));
  EXPECT_THAT(tracker_->Log(), testing::Not(HasSubstr("key="))) << "which the file has, closed to others";
  const std::string key = "Authorization: Bearer " + url_.substr(url_.find("#key=") + 5) + "\r\n";
  EXPECT_EQ(HttpClient(port_).Ask("GET", "/api/v1/session").status, 401);
  HttpReply reply = HttpClient(port_).Ask("GET", "/api/v1/session", key);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("admin"));
  EXPECT_EQ(HttpClient(port_).Ask("POST", "/api/v1/jobs/none/cancel", key).status, 404);
  EXPECT_EQ(HttpClient(port_).Ask("POST", "/api/v1/jobs/none/cancel", key + "Origin: http://localhost:1\r\n").status,
            403);
  HttpClient idle(port_);
  tracker_->Signal(SIGTERM);
  EXPECT_EQ(tracker_->Wait(), 0);
  StartOnSocket();  // the key survives a restart, so a page that was open keeps working
  EXPECT_EQ(HttpClient(port_).Ask("GET", "/api/v1/session", key).status, 200);
}

// A tracker that is killed before the receiver accepts a notice sends it again after the next start.
TEST_F(HttpTest, ANoticeIsSentAlsoAfterAKill) {
  std::mutex mutex;
  std::vector<std::string> heard;
  int status = 500;
  const auto receiver = tracker::HttpServer::Start({.listen = "127.0.0.1:0", .tls = {}, .limits = {}},
                                                   [&](const tracker::HttpRequest& request) {
                                                     const std::lock_guard lock(mutex);
                                                     heard.push_back(request.body);
                                                     return tracker::HttpResponse{.status = status, .body = "{}"};
                                                   })
                            .value();
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return heard.size();
  };
  const std::string prefix = "http://" + receiver->address() + "/";
  const std::vector<std::string> allow = {"--http", "127.0.0.1:0", "--notify-allow", prefix};
  Start("unix:" + (folder_ / "socket").string(), allow);
  const auto jobs = v1::JobService::NewStub(OpenChannel(address_, {}).value());
  v1::SubmitJobRequest submit;
  *submit.mutable_spec() = tracker::SpecOf("a");
  submit.mutable_spec()->set_notify_url("http://elsewhere.lab/");
  v1::Job job;
  grpc::ClientContext refused, taken, ended;
  EXPECT_EQ(jobs->Submit(&refused, submit, &job).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  submit.mutable_spec()->set_notify_url(prefix + "done");
  ASSERT_TRUE(jobs->Submit(&taken, submit, &job).ok());
  v1::CancelJobRequest cancel;
  cancel.set_job_id(job.id());
  ASSERT_TRUE(jobs->Cancel(&ended, cancel, &job).ok());
  ASSERT_TRUE(Eventually([&] { return count() > 0; })) << tracker_->Log();
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  {
    const std::lock_guard lock(mutex);
    status = 200;
    heard.clear();
  }
  Start("unix:" + (folder_ / "socket").string(), allow);
  ASSERT_TRUE(Eventually([&] { return count() > 0; })) << tracker_->Log();
  const std::lock_guard lock(mutex);
  EXPECT_THAT(heard[0], HasSubstr(job.id()));
}

TEST_F(HttpTest, WithoutCertificatesOnlyLoopbackIsServed) {
  Process tracker({HONE_TRACKER_BINARY, "--listen", "unix:" + (folder_ / "socket").string(), "--records",
                   folder_ / "records", "--http", "0.0.0.0:0"},
                  folder_ / "log");
  EXPECT_EQ(tracker.Wait(), 1);
  EXPECT_THAT(tracker.Log(), HasSubstr("without certificates only this machine may connect"));
}

TEST_F(HttpTest, OverTlsATokenBecomesASessionThatRestartsAndRevocationsKnow) {
  MakePki();
  StartWithTls();
  // The certificate names only localhost. A browser would refuse 127.0.0.1, although the tracker listens there.
  EXPECT_THAT(url_, testing::StartsWith("https://localhost:"));
  EXPECT_EQ(Ask("GET", "/api/v1/session", "").status, 401);
  const std::string token = NewToken("viewer"), cookie = Session(token);
  EXPECT_EQ(Ask("POST", "/api/v1/session", "").status, 400);
  HttpReply reply = Ask("GET", "/api/v1/session", cookie);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("viewer"));
  for (const char* change : {"/api/v1/jobs/j/cancel", "/api/v1/agents/board/drain", "/api/v1/agents/board/release"}) {
    EXPECT_EQ(Ask("POST", change, cookie).status, 403) << change;
  }
  tracker_->Signal(SIGKILL);
  tracker_->Wait();
  StartWithTls();
  EXPECT_EQ(Ask("GET", "/api/v1/session", cookie).status, 200);
  EXPECT_EQ(Ask("DELETE", "/api/v1/session", cookie).status, 200);
  EXPECT_EQ(Ask("GET", "/api/v1/session", cookie).status, 401);
}

TEST_F(HttpTest, OverTlsACertificateIsEnoughAndWhatItChangesIsInTheAuditLog) {
  MakePki();
  StartWithTls();
  HttpReply reply = HttpClient(port_, Files("admin")).Ask("POST", "/api/v1/agents/board/drain");
  EXPECT_EQ(reply.status, 200) << reply.body;
  grpc::ClientContext context;
  v1::ListAuditResponse audit;
  ASSERT_TRUE(v1::IdentityService::NewStub(OpenChannel(address_, Files("admin")).value())
                  ->ListAudit(&context, {}, &audit)
                  .ok());
  ASSERT_GE(audit.entries_size(), 1);
  EXPECT_EQ(audit.entries(0).method(), "AdminService/Drain");
  EXPECT_EQ(audit.entries(0).object(), "board");
  EXPECT_EQ(audit.entries(0).name(), "ann");
  EXPECT_THAT(audit.entries(0).peer(), testing::StartsWith("127.0.0.1:"));
}

}  // namespace
}  // namespace hone::farm
