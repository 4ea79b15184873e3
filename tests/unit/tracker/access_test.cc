// SPDX-License-Identifier: Apache-2.0
#include "tracker/access.h"

#include <gmock/gmock.h>
#include <grpc/grpc_security_constants.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "pki/token.h"
#include "pki/tracker_folder.h"
#include "tests/farm/methods.h"
#include "tracker/callers.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;

constexpr Role kRoles[] = {Role::kAgent, Role::kTuner, Role::kClient, Role::kViewer, Role::kAdmin};

using farm::AllMethods;

struct NoProperties : grpc::AuthPropertyIterator {};

// A connection that presents the certificate of an admin.
class FakeContext final : public grpc::AuthContext {
 public:
  FakeContext(std::string uri, std::string pem) : uri_(std::move(uri)), pem_(std::move(pem)) {}
  bool IsPeerAuthenticated() const override { return true; }
  std::vector<grpc::string_ref> GetPeerIdentity() const override { return {}; }
  std::string GetPeerIdentityPropertyName() const override { return ""; }
  std::vector<grpc::string_ref> FindPropertyValues(const std::string& name) const override {
    if (name == GRPC_PEER_URI_PROPERTY_NAME) return {uri_};
    if (name == GRPC_X509_PEM_CERT_PROPERTY_NAME) return {pem_};
    if (name == GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME) return {GRPC_TLS_TRANSPORT_SECURITY_TYPE};
    return {};
  }
  grpc::AuthPropertyIterator begin() const override { return NoProperties(); }
  grpc::AuthPropertyIterator end() const override { return NoProperties(); }
  void AddProperty(const std::string&, const grpc::string_ref&) override {}
  bool SetPeerIdentityPropertyName(const std::string&) override { return false; }

 private:
  const std::string uri_, pem_;
};

class RoleCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pki::MakeTrackerFolder(folder_ / "pki", {"localhost"}, now_).ok());
    membership_ = Membership::Open({.folder = folder_ / "pki"}).value();
  }
  FakeContext ContextOf(const std::string& name, absl::Time from) {
    const auto authority = pki::ReadAuthority(folder_ / "pki").value();
    const FarmIdentity admin{Role::kAdmin, name};
    return {
        UriOf(admin),
        authority->SignMember(pki::MakeRequest(pki::MakeKey()).value(), admin, {from, from + absl::Hours(1)}).value()};
  }
  static grpc::Status Call(RoleCheck& check, FakeContext& context, const std::string& method) {
    const grpc::AuthMetadataProcessor::InputMetadata metadata = {{":path", method}};
    return check.Process(metadata, &context, nullptr, nullptr);
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const absl::Time now_ = absl::Now();
  std::unique_ptr<Membership> membership_;
};

constexpr char kDrain[] = "/hone.v1.AdminService/Drain";

TEST_F(RoleCheckTest, RateLimitIsPerIdentity) {
  Gate gate(membership_.get());
  RoleCheck check(&gate);
  FakeContext ann = ContextOf("ann", now_), bob = ContextOf("bob", now_);
  grpc::Status status;
  for (int i = 0; i < 10'000 && status.ok(); ++i) status = Call(check, ann, kDrain);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("'ann' made more than 200 calls a second"));
  EXPECT_TRUE(Call(check, bob, kDrain).ok());
}

TEST_F(RoleCheckTest, RefusedCallsCountForTheRateLimit) {
  const absl::Time steady = absl::FromUnixSeconds(1'000);
  Gate gate(membership_.get(), [&steady] { return steady; });
  const PresentedCertificate ann = PresentedIn(ContextOf("ann", now_), *membership_).value();
  const PresentedCertificate old = PresentedIn(ContextOf("old", now_ - absl::Hours(2)), *membership_).value();
  const auto last = [&gate](const PresentedCertificate& shown, const char* method) {
    absl::Status status = gate.Check(shown, method);
    for (int i = 0; i < 10'000 && !absl::IsResourceExhausted(status); ++i) status = gate.Check(shown, method);
    return status.code();
  };
  EXPECT_TRUE(absl::IsPermissionDenied(gate.Check(ann, "/hone.v1.AgentService/Synchronize")));
  EXPECT_EQ(last(ann, "/hone.v1.AgentService/Synchronize"), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::IsUnauthenticated(gate.Check(old, kDrain)));
  EXPECT_EQ(last(old, kDrain), absl::StatusCode::kResourceExhausted);
}

// The wall clock may be set back by an hour, and callers must not be refused for that long.
TEST_F(RoleCheckTest, RateLimitUsesTheSteadyClock) {
  absl::Time steady = absl::FromUnixSeconds(1'000);
  Gate gate(membership_.get(), [&steady] { return steady; });
  RoleCheck check(&gate);
  FakeContext ann = ContextOf("ann", now_);
  grpc::Status status;
  for (int i = 0; i < 10'000 && status.ok(); ++i) status = Call(check, ann, kDrain);
  EXPECT_EQ(Call(check, ann, kDrain).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  steady += absl::Seconds(1);
  EXPECT_TRUE(Call(check, ann, kDrain).ok());
  for (int i = 0; i < 100; ++i) gate.CheckToken("wrong").IgnoreError();
  EXPECT_TRUE(absl::IsResourceExhausted(gate.CheckToken("wrong")));
  steady += absl::Seconds(1);
  EXPECT_TRUE(absl::IsUnauthenticated(gate.CheckToken("wrong")));
}

// The check runs under the farm's lock. The register signs and writes to disk under a lock of its own.
TEST_F(RoleCheckTest, CheckingAHeldCallWaitsForNoDisk) {
  Register& members = membership_->members();
  const auto allowed = [&](const std::string& name) {
    return WhileAllowed(PresentedIn(ContextOf(name, now_), *membership_).value(), members);
  };
  const Present ann = allowed("ann"), bob = allowed("bob");
  EXPECT_TRUE(bob());
  ASSERT_TRUE(members.Revoke("bob", now_).ok());
  const std::string secret = pki::RandomSecret();
  ASSERT_TRUE(members.AddToken({secret, Role::kAgent, "", 1, now_ + absl::Hours(1), "ann"}, now_).ok());
  const auto sign = [&](const FarmIdentity& identity) {
    EXPECT_TRUE(ann());
    EXPECT_FALSE(bob());
    return pki::ReadAuthority(folder_ / "pki")
        .value()
        ->SignMember(pki::MakeRequest(pki::MakeKey()).value(), identity, {now_, now_ + absl::Hours(1)});
  };
  EXPECT_TRUE(members.Enrol({secret, "agent", "carol", "host"}, sign, now_).ok());
  EXPECT_FALSE(allowed("bob")()) << "let in just before";
}

// TLS accepted the connection while the certificate was valid, and the connection stays open.
TEST_F(RoleCheckTest, ACertificateThatExpiresOnAnOpenConnectionIsRefused) {
  Gate gate(membership_.get());
  RoleCheck check(&gate);
  FakeContext old = ContextOf("ann", now_ - absl::Hours(2));
  const grpc::Status status = Call(check, old, kDrain);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("the certificate of 'ann' ended"));
  EXPECT_EQ((*membership_->audit().Newest(1))[0].name(), "ann");
}

TEST_F(RoleCheckTest, ACallWithoutACertificateIsToldHowToJoin) {
  Gate gate(membership_.get());
  RoleCheck check(&gate);
  FakeContext stranger("", "");
  const grpc::Status status = Call(check, stranger, kDrain);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("hone-agent join"));
}

TEST_F(RoleCheckTest, AProgramOfAnotherProtocolIsToldWhichSideToUpdate) {
  Gate gate(membership_.get());
  RoleCheck check(&gate);
  FakeContext ann = ContextOf("ann", now_);
  const auto call = [&](const std::string& program) {
    const grpc::AuthMetadataProcessor::InputMetadata metadata = {{":path", kDrain}, {"user-agent", program}};
    return check.Process(metadata, &ann, nullptr, nullptr);
  };
  EXPECT_TRUE(call("grpc-c++/1.51.1").ok()) << "programs of the first version do not say it";
  EXPECT_TRUE(call("hone-protocol/1 grpc-c++/1.51.1").ok());
  EXPECT_EQ(call("hone-protocol/2 grpc-c++/1.51.1").error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(call("hone-protocol/2 grpc-c++/1.51.1").error_message(), HasSubstr("update the tracker"));
  EXPECT_THAT(call("hone-protocol/0 grpc-c++/1.51.1").error_message(), HasSubstr("update the program"));
  EXPECT_THAT(call("hone-protocol/x").error_message(), HasSubstr("update the program"));
}

TEST(AccessTest, EveryMethodHasARule) {
  const std::set<std::string> methods = AllMethods();
  EXPECT_GE(methods.size(), 33u);
  for (const std::string& method : methods) EXPECT_TRUE(HasRule(method)) << "add " << method << " to tracker/access.cc";
}

TEST(AccessTest, RolesMayCallTheirMethods) {
  const auto of = [](Role role) {
    std::set<std::string> allowed;
    for (const std::string& method : AllMethods()) {
      if (CheckRole(role, method).ok()) allowed.insert(method.substr(std::string("/hone.v1.").size()));
    }
    return allowed;
  };
  const std::set<std::string> agent = {"AgentService/Synchronize", "FileService/Offer", "FileService/Put",
                                       "FileService/Describe",     "FileService/Get",   "JoinService/Renew",
                                       "JoinService/WhoAmI"};
  const std::set<std::string> reading = {"JobService/List",          "JobService/Get",         "JobService/Watch",
                                         "RecordService/Best",       "RecordService/Query",    "RecordService/ListBest",
                                         "RecordService/Stats",      "RecordService/Export",   "AdminService/GetFarm",
                                         "AdminService/ListDevices", "JoinService/Renew",      "JoinService/WhoAmI",
                                         "AdminService/ListTuners",  "FleetWatchService/List", "FleetWatchService/Get"};
  std::set<std::string> client = reading;
  client.insert({"FleetWatchService/Add", "FleetWatchService/Run", "FleetWatchService/Accept",
                 "FleetWatchService/Remove", "JobService/Submit", "JobService/Cancel", "FileService/Offer",
                 "FileService/Put", "FileService/Describe", "FileService/Get"});
  std::set<std::string> admin = client;
  admin.insert({"AdminService/Drain", "AdminService/Undrain", "RecordService/Append", "IdentityService/CreateToken",
                "IdentityService/ListTokens", "IdentityService/RevokeToken", "IdentityService/ListIdentities",
                "IdentityService/RevokeIdentity", "IdentityService/ListAudit"});
  EXPECT_EQ(of(Role::kAgent), agent);
  EXPECT_EQ(of(Role::kViewer), reading);
  EXPECT_EQ(of(Role::kClient), client);
  EXPECT_EQ(of(Role::kAdmin), admin);
  EXPECT_EQ(
      of(Role::kTuner),
      (std::set<std::string>{"TunerService/LeaseJob", "TunerService/ReportProgress", "TunerService/SubmitBatch",
                             "TunerService/WaitBatch", "TunerService/CompleteJob", "AdminService/ListDevices",
                             "FileService/Offer", "FileService/Put", "FileService/Describe", "FileService/Get",
                             "RecordService/Append", "RecordService/Best", "RecordService/ListBest",
                             "RecordService/Query", "RecordService/Stats", "JoinService/Renew", "JoinService/WhoAmI"}));
}

TEST(AccessTest, MethodsOutsideTheTableAreRefused) {
  for (const Role role : kRoles) {
    for (const char* method : {"", "/", "/hone.v1.AdminService/Reboot", "hone.v1.AgentService/Synchronize",
                               "/hone.v1.AgentService/synchronize", "/hone.v1.AgentService/Synchronize/",
                               "/grpc.health.v1.Health/Watch", "/hone.v1.JoinService/Join"}) {
      EXPECT_EQ(CheckRole(role, method).code(), absl::StatusCode::kPermissionDenied) << method;
    }
    EXPECT_TRUE(CheckRole(role, "/grpc.health.v1.Health/Check").ok());
  }
}

TEST(AccessTest, ARefusalNamesTheAllowedRoles) {
  EXPECT_THAT(std::string(CheckRole(Role::kViewer, "/hone.v1.JobService/Cancel").message()),
              HasSubstr("role viewer may not call /hone.v1.JobService/Cancel; it needs role client or admin"));
}

TEST(AccessTest, ACallerMayUseOnlyItsOwnName) {
  const FarmIdentity board{Role::kAgent, "board"};
  EXPECT_TRUE(CheckName(board, "board").ok());
  for (const char* name : {"", "boar", "board2", "board/2", "Board"}) {
    EXPECT_EQ(CheckName(board, name).code(), absl::StatusCode::kPermissionDenied) << name;
  }
  EXPECT_TRUE(CheckName(std::nullopt, "anything").ok());
}

TEST(AccessTest, OnlyAdminsMayRaiseThePriority) {
  for (const Role role : {Role::kClient, Role::kViewer, Role::kTuner, Role::kAgent}) {
    const absl::Status refused = CheckPriority(FarmIdentity{role, "ann"}, 1);
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("omit --priority"));
    EXPECT_TRUE(CheckPriority(FarmIdentity{role, "ann"}, 0).ok());
    EXPECT_TRUE(CheckPriority(FarmIdentity{role, "ann"}, -5).ok()) << "who steps back needs no right";
  }
  EXPECT_TRUE(CheckPriority(FarmIdentity{Role::kAdmin, "ann"}, 100).ok());
  EXPECT_TRUE(CheckPriority(std::nullopt, 100).ok()) << "on the socket all is one user's";
}

}  // namespace
}  // namespace hone::tracker
