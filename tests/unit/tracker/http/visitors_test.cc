// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/visitors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "pki/identity_folder.h"
#include "pki/token.h"
#include "pki/tracker_folder.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kList[] = "/hone.v1.JobService/List", kCancel[] = "/hone.v1.JobService/Cancel";

HttpRequest RequestWith(const std::string& header, const std::string& value) {
  HttpRequest request{.method = "GET", .target = "/api/v1/jobs", .peer = "127.0.0.1:1"};
  request.headers["host"] = "localhost:9191";
  if (!header.empty()) request.headers[header] = value;
  return request;
}

absl::StatusCode Origin(const Visitors& visitors, HttpRequest request) { return visitors.CheckOrigin(request).code(); }

class VisitorsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(pki::MakeTrackerFolder(folder_ / "pki", {"localhost"}, absl::Now()).ok());
    membership_ = Membership::Open({.folder = folder_ / "pki"}).value();
    gate_ = std::make_unique<Gate>(membership_.get());
    visitors_ = std::make_unique<Visitors>(membership_.get(), gate_.get(), "secret", Hosts());
  }
  static std::vector<std::string> Hosts() { return {"localhost", "tracker.lab"}; }
  std::string NewToken(Role role, int uses = 1) {
    const Register::NewToken token{pki::RandomSecret(), role, "", uses, absl::Now() + absl::Hours(1), "admin"};
    EXPECT_TRUE(membership_->members().AddToken(token, absl::Now()).ok());
    return pki::Print({role, token.secret, *membership_->Fingerprint()});
  }
  // Begins a session and returns its cookie as a browser sends it.
  std::string CookieOfNew(Role role) {
    const auto session = visitors_->Begin(NewToken(role), "127.0.0.1:1", absl::Now());
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? session->cookie.substr(0, session->cookie.find(';')) : "";
  }
  absl::StatusOr<Visitor> Identify(const std::string& cookie) {
    return visitors_->Identify(RequestWith("cookie", cookie));
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<Visitors> visitors_;
};

TEST_F(VisitorsTest, ATokenBecomesASessionWithItsRole) {
  const auto session = visitors_->Begin(NewToken(Role::kViewer), "127.0.0.1:1", absl::Now());
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(session->cookie, StartsWith("__Host-hone="));
  EXPECT_THAT(session->cookie, HasSubstr("; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age="));
  const auto viewer = Identify("other=1; " + session->cookie.substr(0, session->cookie.find(';')));
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  EXPECT_EQ(viewer->identity.role, Role::kViewer);
  EXPECT_TRUE(viewer->session);
  EXPECT_THAT((*membership_->members().Identities())[0].vouched_by(), HasSubstr(", for a browser session"));
  EXPECT_TRUE(visitors_->Check(*viewer, kList, "").ok());
  EXPECT_EQ(visitors_->Check(*viewer, kCancel, "").code(), absl::StatusCode::kPermissionDenied);
  const auto acts = membership_->audit().Newest(2);
  EXPECT_EQ((*acts)[0].method(), "JobService/Cancel");
  EXPECT_THAT((*acts)[0].result(), HasSubstr("may not call"));
  EXPECT_EQ((*acts)[1].method(), "JoinService/Join");
  EXPECT_EQ((*acts)[1].object(), "viewer/" + viewer->identity.name);
}

TEST_F(VisitorsTest, OptionalChecksAreNotAudited) {
  const auto viewer = Identify(CookieOfNew(Role::kViewer));
  const std::string newest = (*membership_->audit().Newest(1))[0].method();
  EXPECT_TRUE(visitors_->IsAllowed(*viewer, kList));
  EXPECT_FALSE(visitors_->IsAllowed(*viewer, kCancel));
  EXPECT_EQ((*membership_->audit().Newest(1))[0].method(), newest);
}

TEST_F(VisitorsTest, ClientKeyIsEqualForAllRequestsOfAVisitor) {
  const std::string cookie = CookieOfNew(Role::kViewer);
  const std::string client_key = visitors_->ClientKeyOf(RequestWith("cookie", cookie));
  EXPECT_NE(client_key, "");
  EXPECT_EQ(visitors_->ClientKeyOf(RequestWith("cookie", "a=1; " + cookie)), client_key);
  EXPECT_NE(visitors_->ClientKeyOf(RequestWith("cookie", CookieOfNew(Role::kViewer))), client_key);
  EXPECT_EQ(visitors_->ClientKeyOf(RequestWith("", "")), "");
}

TEST_F(VisitorsTest, ATokenIsUsedUpAndInvalidOnesAreRefused) {
  const std::string token = NewToken(Role::kClient);
  EXPECT_TRUE(visitors_->Begin(token, "", absl::Now()).ok());
  EXPECT_EQ(visitors_->Begin(token, "", absl::Now()).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(visitors_->Begin("", "", absl::Now()).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string machines = NewToken(Role::kAgent);
  EXPECT_THAT(std::string(visitors_->Begin(machines, "", absl::Now()).status().message()),
              HasSubstr("this token is for a machine"));
  // A token that claims another role than it was made for.
  EXPECT_EQ(visitors_->Begin("admin" + machines.substr(5), "", absl::Now()).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(VisitorsTest, AChangedCookieIsRefused) {
  const std::string cookie = CookieOfNew(Role::kAdmin);
  ASSERT_TRUE(Identify(cookie).ok());
  for (const size_t at : {size_t{20}, cookie.size() / 2, cookie.size() - 1}) {
    std::string changed = cookie;
    changed[at] = changed[at] == 'a' ? 'b' : 'a';
    EXPECT_EQ(Identify(changed).status().code(), absl::StatusCode::kUnauthenticated) << at;
  }
  EXPECT_EQ(Identify("").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Identify("__Host-hone=.").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(visitors_->Identify(RequestWith("authorization", "Bearer ")).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(VisitorsTest, ASessionOutlivesTheTrackerAndIsOfOneFarm) {
  const std::string cookie = CookieOfNew(Role::kViewer);
  const Visitors again(membership_.get(), gate_.get(), "secret", Hosts());
  EXPECT_TRUE(again.Identify(RequestWith("cookie", cookie)).ok());
  const Visitors other(membership_.get(), gate_.get(), "another secret", Hosts());
  EXPECT_FALSE(other.Identify(RequestWith("cookie", cookie)).ok());
}

// An attacker who has read the tracker's secret can sign cookies of his own.
TEST_F(VisitorsTest, ASessionOfAnotherAuthorityIsRefused) {
  ASSERT_TRUE(pki::MakeTrackerFolder(folder_ / "other", {"localhost"}, absl::Now()).ok());
  const auto other = Membership::Open({.folder = folder_ / "other"}).value();
  Gate gate(other.get());
  const Visitors forger(other.get(), &gate, "secret", Hosts());
  const Register::NewToken token{pki::RandomSecret(), Role::kAdmin, "", 1, absl::Now() + absl::Hours(1), "admin"};
  ASSERT_TRUE(other->members().AddToken(token, absl::Now()).ok());
  const auto session = forger.Begin(pki::Print({token.role, token.secret, *other->Fingerprint()}), "", absl::Now());
  ASSERT_TRUE(session.ok()) << session.status();
  const std::string cookie = session->cookie.substr(0, session->cookie.find(';'));
  EXPECT_TRUE(forger.Identify(RequestWith("cookie", cookie)).ok());
  EXPECT_EQ(Identify(cookie).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(VisitorsTest, ASessionEndsByRevocationOrLogout) {
  const auto revoked = Identify(CookieOfNew(Role::kViewer)), left = Identify(CookieOfNew(Role::kViewer));
  const Present allowed = visitors_->WhileAllowed(*revoked);
  EXPECT_TRUE(allowed());
  ASSERT_TRUE(membership_->members().Revoke(revoked->identity.name, absl::Now()).ok());
  EXPECT_FALSE(allowed());
  EXPECT_EQ(visitors_->Check(*revoked, kList, "").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(visitors_->Check(*left, kList, "").ok());
  const auto cookie = visitors_->End(*left, "", absl::Now());
  ASSERT_TRUE(cookie.ok());
  EXPECT_THAT(*cookie, HasSubstr("Max-Age=0"));
  EXPECT_EQ(visitors_->Check(*left, kList, "").code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(VisitorsTest, ACertificateIdentifiesItsVisitor) {
  const auto authority = pki::ReadAuthority(folder_ / "pki").value();
  ASSERT_TRUE(pki::IssueIdentity(*authority, folder_ / "ann", {Role::kClient, "ann"}, "localhost:1", absl::Now()).ok());
  HttpRequest request = RequestWith("cookie", CookieOfNew(Role::kViewer));
  request.certificate_pem = *pki::ReadFile(pki::FilesIn(folder_ / "ann").identity);
  const auto ann = visitors_->Identify(request);
  ASSERT_TRUE(ann.ok()) << ann.status();
  EXPECT_EQ(ann->identity.name, "ann");
  EXPECT_FALSE(ann->session);
  EXPECT_TRUE(visitors_->Check(*ann, kCancel, "").ok());
  EXPECT_EQ(visitors_->End(*ann, "", absl::Now()).status().code(), absl::StatusCode::kFailedPrecondition);
  request.certificate_pem = *pki::ReadFile(pki::FilesIn(folder_ / "pki").identity);  // the tracker's, not a member's
  EXPECT_EQ(visitors_->Identify(request).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST(LoopbackVisitors, TheKeyIdentifiesTheUser) {
  const Visitors visitors(nullptr, nullptr, "secret", {"127.0.0.1", "localhost"});
  EXPECT_EQ(visitors.key().size(), 64);
  EXPECT_EQ(visitors.Identify(RequestWith("authorization", "Bearer " + visitors.key()))->identity.role, Role::kAdmin);
  for (const std::string& wrong : {std::string(), "Bearer " + std::string(64, '0'), "Bearer " + visitors.key() + "0",
                                   "Basic " + visitors.key(), visitors.key()}) {
    EXPECT_EQ(visitors.Identify(RequestWith("authorization", wrong)).status().code(),
              absl::StatusCode::kUnauthenticated)
        << wrong;
  }
  EXPECT_EQ(visitors.Begin("", "", absl::Now()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(visitors.key(), Visitors(nullptr, nullptr, "another", {}).key());
}

TEST_F(VisitorsTest, AForeignHostNameIsRefused) {
  EXPECT_EQ(Origin(*visitors_, RequestWith("", "")), absl::StatusCode::kOk);
  EXPECT_EQ(Origin(*visitors_, RequestWith("host", "Tracker.Lab")), absl::StatusCode::kOk);
  for (const char* host : {"", "evil.example", "localhost.evil.example:9191", "localhost@evil", "127.0.0.1"}) {
    EXPECT_EQ(Origin(*visitors_, RequestWith("host", host)), absl::StatusCode::kPermissionDenied) << host;
  }
}

TEST_F(VisitorsTest, PagesOfOtherSitesAreRefused) {
  EXPECT_EQ(Origin(*visitors_, RequestWith("origin", "https://localhost:9191")), absl::StatusCode::kOk);
  for (const char* origin :
       {"http://localhost:9191", "https://localhost", "https://localhost:9192", "null", "https://evil.example"}) {
    EXPECT_EQ(Origin(*visitors_, RequestWith("origin", origin)), absl::StatusCode::kPermissionDenied) << origin;
  }
  EXPECT_EQ(Origin(*visitors_, RequestWith("sec-fetch-site", "same-origin")), absl::StatusCode::kOk);
  EXPECT_EQ(Origin(*visitors_, RequestWith("sec-fetch-site", "none")), absl::StatusCode::kOk);
  EXPECT_EQ(Origin(*visitors_, RequestWith("sec-fetch-site", "cross-site")), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Origin(*visitors_, RequestWith("sec-fetch-site", "same-site")), absl::StatusCode::kPermissionDenied);
}

TEST_F(VisitorsTest, ALinkOfAnotherSiteLeadsToAPageAndToNothingElse) {
  HttpRequest link = RequestWith("sec-fetch-site", "cross-site");
  link.headers["sec-fetch-mode"] = "navigate";
  link.headers["sec-fetch-dest"] = "document";
  for (const char* other : {"/api/v1/jobs", "/%61pi/v1/jobs", "/api", "/api?a=b", "/metrics", "/%6detrics", "/healthz",
                            "/metrics/", "//api/v1/jobs", "/x/../api/v1/jobs", "/%zz", "api"}) {
    link.target = other;
    EXPECT_EQ(Origin(*visitors_, link), absl::StatusCode::kPermissionDenied) << other;
  }
  for (const char* page : {"/", "/?all=1", "/assets/index.js", "/apis", "/jobs/api", "/jobs/j1"}) {
    link.target = page;
    EXPECT_EQ(Origin(*visitors_, link), absl::StatusCode::kOk) << page;
  }
  link.headers["sec-fetch-dest"] = "iframe";
  EXPECT_EQ(Origin(*visitors_, link), absl::StatusCode::kPermissionDenied);
  link.headers["sec-fetch-dest"] = "document";
  link.method = "POST";
  EXPECT_EQ(Origin(*visitors_, link), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace hone::tracker
