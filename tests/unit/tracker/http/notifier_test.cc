// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/notifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <mutex>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "pki/identity_folder.h"
#include "pki/tracker_folder.h"
#include "storage/open.h"
#include "tests/farm/builders.h"
#include "tests/unit/tracker/http/api_fixture.h"
#include "tracker/http/json.h"
#include "tracker/http/post.h"
#include "tracker/http/server.h"

namespace hone::tracker {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kUrl[] = "https://hooks.lab/hone/done";

class NotifierTest : public testing::Test {
 protected:
  void SetUp() override { StartTracker(); }
  // Starts a new tracker, as after a kill: everything that was only in memory is lost.
  void StartTracker() {
    shell_.reset();
    FarmOptions options;
    options.jobs.notify_allowed = allowed_;
    shell_ = Shell::Start(options, FarmState::Open(folder_ / "jobs", absl::Now()).value(), store_.get()).value();
  }
  std::string Submit(const std::string& name, const std::string& url) {
    v1::JobSpec spec = SpecOf(name);
    spec.set_notify_url(url);
    const auto job = Await<v1::Job>([&](Done<v1::Job> done) { shell_->SubmitJob(spec, std::move(done)); });
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->id() : "";
  }
  void End(const std::string& id) {
    EXPECT_TRUE(Await<v1::Job>([&](Done<v1::Job> done) { shell_->CancelJob(id, std::move(done)); }).ok());
  }
  v1::JobNotice Notice(const std::string& id) {
    return Await<v1::Job>([&](Done<v1::Job> done) { shell_->GetJob(id, std::move(done)); })->notice();
  }
  // Waits until the outcome of the last round is on disk, so that the number of jobs to notify is `to_tell`.
  void Settle(size_t to_tell) {
    for (int i = 0; i < 6000 && shell_->JobsToNotify().size() != to_tell; ++i) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(shell_->JobsToNotify().size(), to_tell);
  }
  Notifier::Post Taking() {
    return [this](const std::string& url, const std::string& body, const std::stop_token&) {
      posted_.emplace_back(url, body);
      return answer_;
    };
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::unique_ptr<records::Store> store_ =
      storage::OpenRecords(folder_ / "records.db", records::OpenMode::kReadWrite).value();
  const std::vector<std::string> allowed_ = {"https://hooks.lab/", "https://hooks.lab:443/", "https://hooks.lab:8443/"};
  std::unique_ptr<Shell> shell_;
  std::vector<std::pair<std::string, std::string>> posted_;
  absl::Status answer_;
  const absl::Time now_ = absl::Now();
};

TEST_F(NotifierTest, SendsOneNoticePerEndedJob) {
  const std::string id = Submit("a", kUrl), silent = Submit("b", "");
  Notifier notifier(shell_.get(), allowed_, Taking());
  notifier.SendDueNotices(now_);
  EXPECT_THAT(posted_, IsEmpty());
  End(id);
  End(silent);
  for (int i = 0; i < 3; ++i) notifier.SendDueNotices(now_ + absl::Hours(i));
  ASSERT_EQ(posted_.size(), 1u);
  EXPECT_EQ(posted_[0].first, kUrl);
  const Json body = Json::parse(posted_[0].second);
  EXPECT_EQ(body["job"], id);
  EXPECT_EQ(body["state"], "cancelled");
  EXPECT_EQ(body["model"], "a");
  EXPECT_TRUE(Notice(id).closed());
  StartTracker();
  Notifier later(shell_.get(), allowed_, Taking());
  later.SendDueNotices(now_);
  EXPECT_EQ(posted_.size(), 1u) << "that it was told is stored";
}

TEST_F(NotifierTest, GetsJobsWithoutTheirWorkloads) {
  const std::string id = Submit("a", kUrl);
  End(id);
  Settle(1);
  const v1::Job told = shell_->JobsToNotify().at(0);
  const auto whole = Await<v1::Job>([&](Done<v1::Job> done) { shell_->GetJob(id, std::move(done)); });
  EXPECT_EQ(NoticeBody(told), NoticeBody(*whole));
  EXPECT_TRUE(told.spec().workloads().empty());
}

TEST_F(NotifierTest, TriesAgainWithGrowingWaitsAndAfterARestart) {
  const std::string id = Submit("a", kUrl);
  End(id);
  answer_ = absl::UnavailableError("it answered 500");
  {
    Notifier notifier(shell_.get(), allowed_, Taking());
    notifier.SendDueNotices(now_);
    Settle(1);
    notifier.SendDueNotices(now_ + absl::Seconds(4));
    EXPECT_EQ(posted_.size(), 1u);
    notifier.SendDueNotices(now_ + absl::Seconds(6));
    EXPECT_EQ(posted_.size(), 2u);
    Settle(1);
    notifier.SendDueNotices(now_ + absl::Seconds(11));
    EXPECT_EQ(posted_.size(), 2u) << "the second wait is longer";
    EXPECT_EQ(Notice(id).attempts(), 2);
    EXPECT_EQ(Notice(id).problem(), "it answered 500");
    EXPECT_FALSE(Notice(id).closed());
  }
  StartTracker();
  Notifier notifier(shell_.get(), allowed_, Taking());
  answer_ = absl::OkStatus();
  notifier.SendDueNotices(now_ + absl::Seconds(12));
  EXPECT_EQ(posted_.size(), 3u);
  EXPECT_EQ(Notice(id).attempts(), 3) << "the count goes on";
  EXPECT_TRUE(Notice(id).closed());
}

TEST_F(NotifierTest, AFailingReceiverIsTriedOncePerRound) {
  for (const char* url : {kUrl, "https://hooks.lab:443/other", "https://hooks.lab:8443/done"}) End(Submit(url, url));
  Settle(3);
  const auto asked = [&] {
    std::set<std::string> urls;
    for (const auto& [url, body] : std::exchange(posted_, {})) urls.insert(url);
    return urls;
  };
  answer_ = absl::UnavailableError("cannot connect in time");
  Notifier notifier(shell_.get(), allowed_, Taking());
  notifier.SendDueNotices(now_);
  const std::set<std::string> first = asked();
  EXPECT_THAT(first, AllOf(SizeIs(2), Contains("https://hooks.lab:8443/done"))) << "one of each receiver";
  Settle(3);
  notifier.SendDueNotices(now_ + absl::Seconds(1));
  const std::set<std::string> second = asked();
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_FALSE(first.contains(*second.begin())) << "what was left out, and not what waits";
  Settle(3);
  answer_ = absl::OkStatus();
  notifier.SendDueNotices(now_ + absl::Seconds(10));
  EXPECT_THAT(posted_, SizeIs(3));
}

TEST_F(NotifierTest, AStopEndsTheRoundAndCountsNoAttempt) {
  const std::string first = Submit("a", kUrl), second = Submit("b", "https://hooks.lab:8443/done");
  End(first);
  End(second);
  Settle(2);
  std::stop_source stop;
  int attempts = 0;
  Notifier notifier(shell_.get(), allowed_, [&](const std::string&, const std::string&, const std::stop_token&) {
    ++attempts;
    stop.request_stop();
    return absl::UnavailableError("told to stop");
  });
  notifier.SendDueNotices(now_, stop.get_token());
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(Notice(first).attempts() + Notice(second).attempts(), 0);
}

TEST_F(NotifierTest, DestructionStopsTheRunningAttempt) {
  End(Submit("a", kUrl));
  Settle(1);
  std::promise<void> began;
  const auto notifier =
      Notifier::Start(shell_.get(), allowed_, [&](const std::string&, const std::string&, const std::stop_token& stop) {
        std::promise<void> stopped;
        const std::stop_callback wake(stop, [&stopped] { stopped.set_value(); });
        began.set_value();
        stopped.get_future().wait();
        return absl::UnavailableError("told to stop");
      });
  began.get_future().wait();
}

TEST_F(NotifierTest, GivesUpAfterADay) {
  const std::string id = Submit("a", kUrl);
  End(id);
  answer_ = absl::UnavailableError("nobody");
  Notifier notifier(shell_.get(), allowed_, Taking());
  notifier.SendDueNotices(now_ + absl::Hours(23));
  EXPECT_FALSE(Notice(id).closed());
  Settle(1);
  notifier.SendDueNotices(now_ + absl::Hours(25));
  EXPECT_TRUE(Notice(id).closed());
  notifier.SendDueNotices(now_ + absl::Hours(30));
  EXPECT_EQ(posted_.size(), 2u);
}

TEST_F(NotifierTest, NoticesNotAllowedAfterARestartAreGivenUp) {
  const std::string gone = Submit("a", kUrl), stays = Submit("b", "https://hooks.lab:8443/done");
  StartTracker();
  End(gone);
  End(stays);
  Settle(2);
  Notifier narrowed(shell_.get(), {"https://hooks.lab:8443/"}, Taking());
  narrowed.SendDueNotices(now_);
  ASSERT_THAT(posted_, SizeIs(1));
  EXPECT_EQ(posted_[0].first, "https://hooks.lab:8443/done");
  EXPECT_TRUE(Notice(gone).closed());
  EXPECT_EQ(Notice(gone).attempts(), 0);
  EXPECT_THAT(Notice(gone).problem(),
              HasSubstr("this farm sends no notices to this address; it allows https://hooks.lab:8443/"));
  Settle(0);
  const std::string last = Submit("c", kUrl);
  End(last);
  Settle(1);
  Notifier nobody(shell_.get(), {}, Taking());
  nobody.SendDueNotices(now_);
  EXPECT_THAT(posted_, SizeIs(1));
  EXPECT_THAT(Notice(last).problem(), HasSubstr("it allows none"));
}

TEST_F(NotifierTest, OnlyAllowedAddressesAreTaken) {
  v1::JobSpec spec = SpecOf("a");
  spec.set_notify_url("https://elsewhere.lab/");
  const auto refused = Await<v1::Job>([&](Done<v1::Job> done) { shell_->SubmitJob(spec, std::move(done)); });
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("it allows https://hooks.lab/, "));
}

using NightNoticeTest = ApiTest;

TEST_F(NightNoticeTest, ANightIsToldAsTheApiShowsIt) {
  std::vector<std::pair<std::string, std::string>> posted;
  absl::Status answer = absl::UnavailableError("it answered 500");
  Notifier notifier(shell_.get(), {"https://hooks.lab/"},
                    [&](const std::string& url, const std::string& body, const std::stop_token&) {
                      posted.emplace_back(url, body);
                      return answer;
                    });
  // A night is told once it is stored. So this sends until `count` notices were posted in all.
  const auto send = [&](absl::Time now, size_t count) {
    for (int i = 0; i < 6000 && posted.size() < count; ++i) {
      notifier.SendDueNotices(now);
      absl::SleepFor(absl::Milliseconds(10));
    }
    notifier.SendDueNotices(now);
  };
  AddWatch();
  MeasureNight();
  send(absl::Now(), 0);
  EXPECT_THAT(posted, IsEmpty()) << "nothing is wrong";
  MeasureNight(0.020);
  const absl::Time now = absl::Now();
  send(now, 1);
  ASSERT_THAT(posted, SizeIs(1));
  EXPECT_EQ(posted[0].first, "https://hooks.lab/night");
  const Json body = Json::parse(posted[0].second);
  EXPECT_EQ(body["watch"], "nightly");
  EXPECT_EQ(body["device"], "nightboard/cpu");
  EXPECT_EQ(body["verdict"], "slower");
  EXPECT_EQ(body["job"], GetJson("/api/v1/watches/nightly")["devices"][0]["nights"][1]["job"]);
  EXPECT_EQ(GetJson("/api/v1/watches/nightly")["devices"][0]["notice"]["problem"], "it answered 500");
  answer = absl::OkStatus();
  send(now + absl::Seconds(6), 2);
  EXPECT_THAT(posted, SizeIs(2));
  send(now + absl::Hours(1), 2);
  EXPECT_THAT(posted, SizeIs(2)) << "it was told";
  EXPECT_EQ(GetJson("/api/v1/watches/nightly")["devices"][0]["notice"]["told"], "slower");
}

TEST(WaitAfterAttempt, DoublesUpToAnHour) {
  EXPECT_EQ(WaitAfterAttempt(1), absl::Seconds(5));
  EXPECT_EQ(WaitAfterAttempt(4), absl::Seconds(40));
  EXPECT_EQ(WaitAfterAttempt(30), absl::Hours(1));
}

// A receiver of notices that records its requests.
class PostTest : public testing::Test {
 protected:
  void Serve(const TlsFiles& tls = {}) {
    server_ =
        HttpServer::Start({.listen = "localhost:0", .tls = tls, .limits = {}}, [this](const HttpRequest& request) {
          const std::lock_guard lock(mutex_);
          heard_.push_back(request.method + " " + request.target + " " + request.body);
          host_ = request.Header("host");
          return answer_;
        }).value();
  }
  absl::Status Send(const std::string& scheme, const std::string& host, const std::string& target) {
    return PostJson(ParseNoticeUrl(scheme + "://" + host + ":" + std::to_string(server_->port()) + target).value(),
                    R"({"job": "j1"})", absl::Seconds(20));
  }
  std::mutex mutex_;
  std::vector<std::string> heard_;
  std::string host_;  // the last host name that was resolved
  HttpResponse answer_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(PostTest, ReportsTheStatusOfTheAnswer) {
  Serve();
  EXPECT_TRUE(Send("http", "localhost", "/a?b=c").ok());
  answer_.status = 503;
  EXPECT_THAT(std::string(Send("http", "localhost", "/").message()), HasSubstr("the receiver answered 503"));
  EXPECT_THAT(heard_, ElementsAre("POST /a?b=c {\"job\": \"j1\"}", "POST / {\"job\": \"j1\"}"));
  EXPECT_EQ(host_, "localhost:" + std::to_string(server_->port()));
  server_->Stop();
  EXPECT_THAT(std::string(Send("http", "localhost", "/").message()), HasSubstr("cannot connect"));
}

TEST_F(PostTest, FollowsNoRedirect) {
  Serve();
  answer_.status = 307;
  answer_.headers = {{"Location", "/secret"}};
  EXPECT_THAT(std::string(Send("http", "localhost", "/a").message()), HasSubstr("redirects are not followed"));
  EXPECT_EQ(heard_.size(), 1u);
}

TEST_F(PostTest, VerifiesTheServersCertificate) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  ASSERT_TRUE(pki::MakeTrackerFolder(folder / "pki", {"localhost"}, absl::Now()).ok());
  const TlsFiles files = pki::FilesIn(folder / "pki");
  Serve(files);
  EXPECT_THAT(std::string(Send("https", "localhost", "/").message()), HasSubstr("cannot set up TLS with the receiver"));
  setenv("SSL_CERT_FILE", files.authority.c_str(), 1);
  const absl::Status trusted = Send("https", "localhost", "/"), other_name = Send("https", "127.0.0.1", "/");
  unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(trusted.ok()) << trusted;
  EXPECT_THAT(std::string(other_name.message()), HasSubstr("cannot set up TLS with the receiver"));
  EXPECT_EQ(heard_.size(), 1u);
}

TEST_F(PostTest, EndsWhenItsTimeIsOver) {
  Serve();
  const NoticeUrl url = ParseNoticeUrl("http://localhost:" + std::to_string(server_->port())).value();
  EXPECT_FALSE(PostJson(url, "{}", absl::ZeroDuration()).ok());
}

// The receiver stops answering from then on.
TEST_F(PostTest, EndsWhenItIsToldToStop) {
  std::stop_source stop;
  std::promise<void> over;
  const std::shared_future<void> is_over = over.get_future().share();
  server_ = HttpServer::Start({.listen = "localhost:0", .tls = {}, .limits = {}}, [&](const HttpRequest&) {
              stop.request_stop();
              is_over.wait();
              return HttpResponse();
            }).value();
  const NoticeUrl url = ParseNoticeUrl("http://localhost:" + std::to_string(server_->port())).value();
  const auto post = [&] { return PostJson(url, "{}", absl::Seconds(20), stop.get_token()); };
  // The server may have received everything before the sender knows that it was sent.
  EXPECT_THAT(std::string(post().message()),
              AnyOf(HasSubstr("the tracker stopped before it could read the receiver's answer"),
                    HasSubstr("the tracker stopped before it could send")));
  over.set_value();
  server_->Stop();
  EXPECT_THAT(std::string(post().message()),
              HasSubstr("the tracker stopped before it could look up the receiver's address"));
}

}  // namespace
}  // namespace hone::tracker
