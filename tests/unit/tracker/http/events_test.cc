// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/tracker/http/site_fixture.h"
#include "tracker/http/farm_view.h"

namespace hone::tracker {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> Texts(const std::vector<Chunk>& chunks) {
  std::vector<std::string> texts;
  for (const Chunk& chunk : chunks) texts.push_back(chunk == nullptr ? "end" : *chunk);
  return texts;
}

TEST(EventRing, ReturnsMissedEventsOrReset) {
  EventRing ring("b", 2);
  EXPECT_THAT(Texts(ring.After("")), ElementsAre("retry: 2000\nevent: reset\nid: b-0\ndata: {}\n\n"));
  EXPECT_THAT(ring.After("b-0"), IsEmpty());
  EXPECT_EQ(*ring.Add("change", {{"x", "a\nb"}}), "event: change\nid: b-1\ndata: {\"x\":\"a\\nb\"}\n\n");
  ring.Add("change", 2);
  EXPECT_THAT(Texts(ring.After("b-0")), ElementsAre(HasSubstr("id: b-1"), HasSubstr("id: b-2")));
  EXPECT_THAT(Texts(ring.After("b-1")), ElementsAre("event: change\nid: b-2\ndata: 2\n\n"));
  EXPECT_THAT(ring.After("b-2"), IsEmpty());
  ring.Add("change", 3);
  for (const char* unknown : {"b-0", "b-4", "c-2", "b-", "b-02", "x"}) {
    EXPECT_THAT(Texts(ring.After(unknown)), ElementsAre(HasSubstr("event: reset\nid: b-3\n"))) << unknown;
  }
}

TEST(EventRing, LimitsBytesButKeepsTheNewestEvent) {
  EventRing ring("b", 100);
  const std::string half(EventRing::kBytesMax / 2, 'x');
  for (int i = 0; i < 3; ++i) ring.Add("change", half);
  EXPECT_THAT(ring.After("b-2"), SizeIs(1));
  EXPECT_THAT(Texts(ring.After("b-1")), ElementsAre(HasSubstr("event: reset"))) << "two have more than may be kept";
  ring.Add("change", half + half + half);
  EXPECT_THAT(ring.After("b-3"), SizeIs(1));
}

TEST(ChangeTracker, AreReportedOnce) {
  ChangeTracker told;
  EXPECT_EQ(told.Take({{"a", {{"x", 1}, {"at", 5}}}, {"b", 2}}, {}),
            Json::parse(R"({"changed": [{"x": 1, "at": 5}, 2], "gone": []})"));
  ChangeTracker fleeting;
  fleeting.Take({{"a", {{"x", 1}, {"at", 5}}}, {"b", {{"x", 2}}}}, {"at"});
  EXPECT_EQ(fleeting.Take({{"a", {{"x", 1}, {"at", 6}}}, {"b", {{"x", 2}}}}, {"at"}), nullptr);
  EXPECT_EQ(fleeting.Take({{"a", {{"x", 3}, {"at", 7}}}}, {"at"}),
            Json::parse(R"({"changed": [{"x": 3, "at": 7}], "gone": ["b"]})"));
  EXPECT_EQ(fleeting.Take({{"a", {{"x", 3}}}}, {"at"}), nullptr);
}

// Collects the events that one viewer gets. The feed has no thread here; the test calls Turn itself.
class EventsTest : public SiteTest {
 protected:
  struct Viewer {
    std::vector<Chunk> chunks;
    bool allowed = true;
    std::shared_ptr<void> subscription;
  };
  std::unique_ptr<Viewer> Watch(const std::string& last = "", const std::string& who = "") {
    auto viewer = std::make_unique<Viewer>();
    viewer->subscription = events_.Subscribe(
        who, last, [raw = viewer.get()] { return raw->allowed; },
        [raw = viewer.get()](Chunk chunk) { raw->chunks.push_back(std::move(chunk)); });
    return viewer;
  }
  void Poll() { events_.Poll(now_ += std::chrono::hours(1), absl::Now()); }  // everything is due after an hour
  static Json DataOf(const Chunk& chunk) {
    const size_t at = chunk->find("data: ");
    return at == std::string::npos ? Json() : Json::parse(chunk->substr(at + 6), nullptr, false);
  }
  static std::string IdOf(const Chunk& chunk) {
    const size_t at = chunk->find("id: ") + 4;
    return chunk->substr(at, chunk->find('\n', at) - at);
  }
  // Reports progress of the job that Measure began.
  void Report(int64_t trials) {
    v1::ReportProgressRequest report;
    *report.mutable_lease() = lease_;
    report.mutable_progress()->set_trials(trials);
    const auto response = Await<v1::ReportProgressResponse>(
        [&](Done<v1::ReportProgressResponse> done) { shell_->ReportProgress(report, std::move(done)); });
    EXPECT_TRUE(response.ok()) << response.status();
  }
  EventFeed::SteadyTime now_ = std::chrono::steady_clock::now();
};

TEST_F(EventsTest, ASubscriberGetsResetAndThenChanges) {
  const auto viewer = Watch();
  ASSERT_THAT(Texts(viewer->chunks), ElementsAre(HasSubstr("event: reset")));
  Poll();
  const std::string one = SubmitJob("one");
  Register("board");
  viewer->chunks.clear();
  Poll();
  ASSERT_THAT(viewer->chunks, SizeIs(1));
  const Json data = DataOf(viewer->chunks[0]);
  EXPECT_EQ(data["jobs"]["changed"][0]["job"], one);
  EXPECT_EQ(data["devices"]["changed"][0]["device"], "board/cpu");
  EXPECT_EQ(data["overview"]["jobs"]["queued"], 1);
  viewer->chunks.clear();
  events_.Poll(now_ + std::chrono::seconds(20), absl::Now());
  EXPECT_THAT(Texts(viewer->chunks), ElementsAre(": \n\n"));  // nothing changed
}

// The overview's time and free disk space change constantly; a change of only these is not sent at once.
TEST_F(EventsTest, TheOverviewOfAnIdleFarmIsSentEveryMinute) {
  const auto viewer = Watch();
  Poll();
  viewer->chunks.clear();
  events_.Poll(now_ + std::chrono::seconds(59), absl::Now());
  EXPECT_THAT(Texts(viewer->chunks), ElementsAre(": \n\n"));
  viewer->chunks.clear();
  Poll();
  ASSERT_THAT(viewer->chunks, SizeIs(1));
  const Json data = DataOf(viewer->chunks[0]);
  EXPECT_THAT(data, SizeIs(1));
  EXPECT_TRUE(data.contains("overview"));
}

TEST_F(EventsTest, AClockSetBackDelaysNoEvent) {
  const auto viewer = Watch();
  Poll();
  const std::string one = SubmitJob("one");
  viewer->chunks.clear();
  events_.Poll(now_ += std::chrono::hours(1), absl::Now() - absl::Hours(24));
  ASSERT_THAT(viewer->chunks, SizeIs(1));
  EXPECT_EQ(DataOf(viewer->chunks[0])["jobs"]["changed"][0]["job"], one);
}

TEST_F(EventsTest, RunningJobsAreReportedWhateverTheQueueLength) {
  const auto viewer = Watch();
  const std::string waits = SubmitJob("waits");
  const std::string running = Measure("board");
  Poll();
  for (size_t i = 0; i < kPageJobsMax; ++i) {
    v1::JobSpec spec = SpecOf("newer" + std::to_string(i));
    spec.set_submitted_by("user" + std::to_string(i / 50));  // each user stays within his limit of jobs
    shell_->SubmitJob(spec, [](const absl::StatusOr<v1::Job>& job) { EXPECT_TRUE(job.ok()) << job.status(); });
    if (i % 50 == 0) Report(1);  // keeps the tuner's lease
  }
  SubmitJob("last");
  Report(7);
  viewer->chunks.clear();
  Poll();
  Poll();
  Json gone = Json::array(), changed = Json::array();
  for (const Chunk& chunk : viewer->chunks) {
    Json data = DataOf(chunk);
    for (const Json& name : data["jobs"]["gone"]) gone.push_back(name);
    for (const Json& job : data["jobs"]["changed"]) {
      if (job["job"] == running) changed.push_back(job["trials"]);
    }
  }
  EXPECT_EQ(gone, Json::array()) << "all are open";
  ASSERT_FALSE(changed.empty());
  EXPECT_EQ(changed.back(), 7);

  viewer->chunks.clear();
  Post("/api/v1/jobs/" + waits + "/cancel", "");
  Poll();
  EXPECT_THAT(Texts(viewer->chunks), Contains(HasSubstr(waits))) << "that it ended, though it was behind the others";
}

TEST_F(EventsTest, WithoutSubscribersMissedEventsAreReset) {
  auto viewer = Watch();
  Poll();
  const std::string id = IdOf(viewer->chunks.back());
  viewer->subscription.reset();
  Post("/api/v1/jobs/" + SubmitJob("meanwhile") + "/cancel", "");
  viewer = Watch(id);
  EXPECT_THAT(Texts(viewer->chunks), ElementsAre(HasSubstr("event: reset")));
}

TEST_F(EventsTest, LimitsStreamsPerIdentity) {
  std::vector<std::unique_ptr<Viewer>> of_ann, of_this_user;
  for (int i = 0; i < EventFeed::kStreamsPerIdentityMax; ++i) of_ann.push_back(Watch("", "ann"));
  EXPECT_TRUE(of_ann.back()->subscription != nullptr);
  EXPECT_TRUE(Watch("", "ann")->subscription == nullptr);
  EXPECT_TRUE(Watch("", "bob")->subscription != nullptr);
  of_ann.pop_back();
  EXPECT_TRUE(Watch("", "ann")->subscription != nullptr);
  for (int i = 0; i <= EventFeed::kStreamsPerIdentityMax; ++i) of_this_user.push_back(Watch());
  EXPECT_TRUE(of_this_user.back()->subscription != nullptr);
}

TEST_F(EventsTest, AnEndedJobIsChangedOnceAndThenGone) {
  const auto viewer = Watch();
  const std::string one = SubmitJob("one");
  Poll();
  Post("/api/v1/jobs/" + one + "/cancel", "");
  viewer->chunks.clear();
  Poll();
  Poll();
  ASSERT_GE(viewer->chunks.size(), 2u);
  EXPECT_EQ(DataOf(viewer->chunks[0])["jobs"]["changed"][0]["state"], "cancelled");
  EXPECT_EQ(DataOf(viewer->chunks[1])["jobs"]["gone"][0], one);
}

TEST_F(EventsTest, ManyChangesAreOneEventAndItIsBuiltOnce) {
  const auto first = Watch(), second = Watch();
  Poll();
  first->chunks.clear();
  second->chunks.clear();
  for (int i = 0; i < 50; ++i) SubmitJob("job" + std::to_string(i));
  Poll();
  ASSERT_THAT(first->chunks, SizeIs(1));
  EXPECT_THAT(DataOf(first->chunks[0])["jobs"]["changed"], SizeIs(50));
  ASSERT_THAT(second->chunks, SizeIs(1));
  EXPECT_EQ(first->chunks[0].get(), second->chunks[0].get());
  SubmitJob("later");
  events_.Poll(now_ + std::chrono::milliseconds(100), absl::Now());  // before the next event is due
  EXPECT_THAT(first->chunks, SizeIs(1));
}

TEST_F(EventsTest, AReturningSubscriberGetsMissedEvents) {
  auto viewer = Watch();
  const auto other = Watch();
  Poll();
  const std::string id = IdOf(viewer->chunks.back());
  viewer->subscription.reset();
  SubmitJob("meanwhile");
  Poll();
  const size_t before = viewer->chunks.size();
  EXPECT_THAT(other->chunks.size(), before + 1);
  viewer = Watch(id);
  ASSERT_THAT(viewer->chunks, SizeIs(1));
  EXPECT_EQ(viewer->chunks[0].get(), other->chunks.back().get());
}

TEST_F(EventsTest, AStreamEndsWhenItsCallerIsRevoked) {
  const auto viewer = Watch();
  Poll();
  EXPECT_NE(viewer->chunks.back(), nullptr);
  viewer->chunks.clear();
  viewer->allowed = false;
  SubmitJob("secret");
  Poll();
  EXPECT_THAT(Texts(viewer->chunks), ElementsAre("end"));
}

TEST_F(EventsTest, TheStreamIsARoute) {
  const HttpResponse response = Get("/api/v1/events");
  EXPECT_EQ(response.type, "text/event-stream");
  std::vector<Chunk> chunks;
  const auto subscription = response.stream([&](Chunk chunk) { chunks.push_back(std::move(chunk)); });
  EXPECT_THAT(Texts(chunks), ElementsAre(StartsWith("retry: 2000\nevent: reset\nid: ")));
}

}  // namespace
}  // namespace hone::tracker
