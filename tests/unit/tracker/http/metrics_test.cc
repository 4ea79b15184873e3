// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/unit/tracker/http/site_fixture.h"
#include "tracker/http/health.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;

TEST(Exposition, EscapesTextOfLabelsAndOfHelp) {
  Exposition text;
  text.Family("a", "gauge", "one \\ two\nthree \"four\"");
  text.Sample(1, {{"x", "q\"uo\\te\nline"}, {"y", ""}});
  text.Sample(0.25);
  text.Sample(1e300);
  EXPECT_EQ(text.text(),
            "# HELP a one \\\\ two\\nthree \"four\"\n# TYPE a gauge\n"
            "a{x=\"q\\\"uo\\\\te\\nline\",y=\"\"} 1\na 0.25\na 1e+300\n");
}

TEST(Exposition, AHistogramCountsUpToEachBound) {
  Histogram histogram({0.1, 1});
  for (const double value : {0.1, 0.05, 0.5, 7.0}) histogram.Add(value);
  Exposition text;
  text.Family("h", "histogram", "H.");
  text.Samples(histogram);
  EXPECT_EQ(text.text(),
            "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"0.1\"} 2\nh_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 4\n"
            "h_sum 7.65\nh_count 4\n");
}

std::set<std::string> FamiliesIn(const std::string& text) {
  std::set<std::string> families;
  const std::regex type("# TYPE ([a-z_]+) ");
  for (std::sregex_iterator at(text.begin(), text.end(), type), end; at != end; ++at) families.insert((*at)[1]);
  return families;
}

TEST_F(SiteTest, MetricsCountEvents) {
  SubmitJob("one");
  Measure("board");
  const HttpResponse response = Get("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.type, "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line :
       {"hone_jobs{state=\"queued\"} 1\n", "hone_jobs{state=\"running\"} 1\n", "hone_devices{activity=\"idle\"} 1\n",
        "hone_devices{activity=\"measuring\"} 0\n", "hone_devices_health{health=\"good\"} 1\n",
        "hone_outcomes_total{kind=\"timed\"} 2\n", "hone_outcomes_total{kind=\"wrong_output\"} 1\n",
        "hone_outcomes_total{kind=\"crashed\"} 0\n", "hone_results_accepted_total 1\n",
        "hone_lease_wait_seconds_count 1\n", "hone_storing 1\n"}) {
    EXPECT_THAT(response.body, HasSubstr(line));
  }
  EXPECT_THAT(response.body, testing::Not(HasSubstr("hone_commit_seconds_count 0\n")));
}

// Such records are in the -wal file. The -shm file holds no records and does not count.
TEST(DiskUseOf, CountsTheRecordsThatAreNotInTheirFileYet) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  EXPECT_EQ(DiskUseOf(folder / "records").records_bytes, 0);
  std::ofstream(folder / "records") << "records";
  EXPECT_EQ(DiskUseOf(folder / "records").records_bytes, 7);
  std::ofstream(folder / "records-wal") << "more";
  std::ofstream(folder / "records-shm") << "shared";
  EXPECT_EQ(DiskUseOf(folder / "records").records_bytes, 11);
}

TEST_F(SiteTest, TheGuideListsEveryMetricAndNoOther) {
  std::stringstream guide;
  guide << std::ifstream(HONE_SOURCE_DIR "/docs/guides/operating.md").rdbuf();
  const std::string text = guide.str();
  std::set<std::string> listed;
  const std::regex row("\n\\| `(hone_[a-z_]+)");
  for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at) listed.insert((*at)[1]);
  const std::set<std::string> families = FamiliesIn(Get("/metrics").body);
  EXPECT_EQ(listed, families);
  // Every metric that the alerts and the Grafana panel query must exist.
  for (const char* file : {"/packaging/tracker/alerts.yml", "/packaging/tracker/grafana.json"}) {
    std::stringstream queries;
    queries << std::ifstream(std::string(HONE_SOURCE_DIR) + file).rdbuf();
    const std::string asked = queries.str();
    int found = 0;
    const std::regex name("hone_[a-z_]+");
    for (std::sregex_iterator at(asked.begin(), asked.end(), name), end; at != end; ++at) {
      std::string family = std::regex_replace(at->str(), std::regex("_(bucket|sum|count)$"), "");
      EXPECT_TRUE(families.contains(family)) << file << ": " << family;
      ++found;
    }
    EXPECT_GT(found, 3) << file;
  }
}

TEST_F(SiteTest, HealthNeedsNoRoleButItsReasonsDo) {
  HttpRequest stranger = Request("GET", "/healthz");
  stranger.headers.erase("authorization");
  EXPECT_EQ(Answer(stranger).status, 200);
  EXPECT_THAT(Answer(stranger).body, HasSubstr(R"({"status":"ok","checks":{"store":"ok")"));
  const Site behind{ApiContext{.shell = shell_.get(),
                               .store = store_.get(),
                               .visitors = &visitors_,
                               .not_before = absl::Now() + absl::Hours(1)}};
  EXPECT_EQ(behind.Answer(stranger).status, 503);
  EXPECT_THAT(behind.Answer(stranger).body, HasSubstr(R"("clock":"failing")"));
  EXPECT_THAT(behind.Answer(Request("GET", "/healthz")).body, HasSubstr("the system clock shows"));
}

TEST(CheckHealth, NamesWhatFails) {
  const absl::Time now = absl::Now();
  HealthFacts facts{.storage_failure = "", .disk_free_bytes = int64_t{1} << 40, .now = now, .not_before = now};
  for (const HealthCheck& check : CheckHealth(facts)) EXPECT_EQ(check.why, "") << check.name;
  facts = {
      .storage_failure = "disk full", .disk_free_bytes = 100 << 20, .now = now, .not_before = now + absl::Minutes(6)};
  const std::vector<HealthCheck> checks = CheckHealth(facts);
  EXPECT_EQ(checks.at(0).why, "disk full");
  EXPECT_THAT(checks.at(1).why, HasSubstr("only 100 MiB of disk space are left"));
  EXPECT_THAT(checks.at(2).why, HasSubstr("clock"));
}

TEST(CheckHealth, PassesAfterManyStartsInAMinute) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const absl::Time now = absl::Now();
  absl::Time not_before;
  for (int i = 0; i < 20; ++i) not_before = FarmState::Open(folder / "jobs", now)->latest_start();
  for (const HealthCheck& check : CheckHealth({"", int64_t{1} << 40, now, not_before})) {
    EXPECT_EQ(check.why, "") << check.name;
  }
}

}  // namespace
}  // namespace hone::tracker
