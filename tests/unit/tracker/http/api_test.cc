// SPDX-License-Identifier: Apache-2.0
// The API's answers, and that docs/API.md documents exactly their fields.
#include "tracker/http/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "proto/convert.h"
#include "tests/unit/tracker/http/api_fixture.h"
#include "tracker/http/farm_view.h"
#include "tracker/job_json.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kPage[] = HONE_SOURCE_DIR "/docs/API.md";

// Returns the fields of what is answered to a GET by the address above each table.
std::map<std::string, std::set<std::string>> Documented() {
  std::ifstream file(kPage);
  std::map<std::string, std::set<std::string>> fields;
  std::string line, address;
  bool of_answer = false;
  while (std::getline(file, line)) {
    if (line.starts_with("## ")) address = "";
    if (line.starts_with("## `GET /api/")) address = line.substr(8, line.find('`', 8) - 8);
    if (line.starts_with("| ") && !line.starts_with("| `") && !line.starts_with("| -")) {
      of_answer = line.starts_with("| Field |");
    }
    if (line.starts_with("| `") && of_answer && !address.empty()) {
      fields[address].insert(line.substr(3, line.find('`', 3) - 3));
    }
  }
  return fields;
}

// Adds names such as "jobs[].failed.crashed" for every value of the document.
void AddLeaves(const Json& json, const std::string& name, std::set<std::string>& leaves) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) AddLeaves(value, name.empty() ? key : name + "." + key, leaves);
  } else if (json.is_array()) {
    for (const Json& element : json) AddLeaves(element, name + "[]", leaves);
  } else {
    leaves.insert(name);
  }
}

// True if the page documents this field, by its name or by the longest name with '*' for the end. Removes the matching
// entry from `missing`.
bool Covers(const std::set<std::string>& fields, const std::string& leaf, std::set<std::string>& missing) {
  std::string covering = fields.contains(leaf) ? leaf : "";
  for (const std::string& field : fields) {
    const bool star = field.back() == '*' && leaf.rfind(field.substr(0, field.size() - 1), 0) == 0;
    if (star && covering != leaf && field.size() > covering.size()) covering = field;
  }
  missing.erase(covering);
  return !covering.empty();
}

TEST_F(ApiTest, ThePageListsEveryFieldAndNoOther) {
  AddWatch();
  MeasureNight();
  const std::string full = SubmitJob(FullSpec()), run = RunPackages(), file = StoreFile("contents");
  const std::map<std::string, std::set<std::string>> documented = Documented();
  std::set<std::string> routes;
  for (const Route& route : Routes()) {
    if (route.method == "GET" && route.path.rfind("/api/", 0) == 0) routes.insert(std::string(route.path));
  }
  for (const std::string& address : routes) {
    // These answer with lines, events or bytes instead of one document.
    const std::set<std::string> others = {"/api/v1/records/export", "/api/v1/events", "/api/v1/files/*/contents",
                                          "/api/v1/files/*/chunks/*"};
    if (others.contains(address)) continue;
    ASSERT_TRUE(documented.contains(address)) << address;
    std::set<std::string> leaves, missing = documented.at(address);
    for (const std::string& name :
         {job_, full, run, workload_, file, std::string("1"), std::string("3"), std::string("nightly")}) {
      std::string target = address;
      if (const size_t star = target.find('*'); star != std::string::npos) target.replace(star, 1, name);
      const HttpResponse response = Get(target);
      if (response.status == 200) AddLeaves(Json::parse(response.body), "", leaves);
    }
    for (const std::string& leaf : leaves) {
      const std::set<std::string> nullable = {"devices[].running", "devices[].golden", "jobs[].notice", "jobs[].run",
                                              "jobs[].confirmation"};
      if (nullable.contains(leaf)) continue;  // may be null
      const bool found = Covers(documented.at(address), leaf, missing);
      EXPECT_TRUE(found) << address << " answers " << leaf << ", which docs/API.md does not have";
    }
    EXPECT_THAT(missing, testing::IsEmpty()) << address << ": docs/API.md has what is not answered";
  }
  for (const auto& [address, fields] : documented) EXPECT_TRUE(routes.contains(address)) << address;
}

TEST_F(ApiTest, EveryAddressIsOnThePage) {
  std::stringstream page;
  page << std::ifstream(kPage).rdbuf();
  for (const Route& route : Routes()) {
    if (route.path.rfind("/api/", 0) != 0) continue;
    EXPECT_THAT(page.str(), HasSubstr("`" + std::string(route.method) + " " + std::string(route.path) + "`"));
  }
}

TEST_F(ApiTest, AJobShowsItsStateAndTheTimesOfItsWorkloads) {
  const Json job = GetJson("/api/v1/jobs/" + job_);
  EXPECT_EQ(job["state"], "running");
  EXPECT_EQ(job["trials"], 40);
  EXPECT_EQ(job["seconds_left"], 30);  // 60 of 100 trials at two a second
  EXPECT_EQ(job["failed"], Json({{"crashed", 3}}));
  EXPECT_EQ(job["latency_ms_before"], 4);
  const Json& workload = job["workloads"][0];
  EXPECT_EQ(workload["best_ms"], 1);
  EXPECT_EQ(workload["roofline_ms"], 0.25);
  EXPECT_EQ(workload["share_before"], 1);
  EXPECT_EQ(workload["trouble"], "no compiler");
  EXPECT_EQ(Get("/api/v1/jobs/none").status, 404);
}

TEST_F(ApiTest, AJobShowsHowItsLatencyDevelopedAndWorkloadsByTitle) {
  const Json job = GetJson("/api/v1/jobs/" + job_);
  ASSERT_THAT(job["latency"], SizeIs(1));
  EXPECT_EQ(job["latency"][0]["latency_ms"], 1);
  EXPECT_EQ(job["latency"][0]["trials"], 40);
  EXPECT_EQ(job["workloads"][0]["title"], "conv2d 8x8x4");
  EXPECT_EQ(job["ended_because"], "");
  v1::JobSpec spec = SpecOf("titled");
  spec.mutable_workloads(0)->set_op("conv2d");
  spec.mutable_workloads(0)->set_title("conv2d 32x32x16");
  EXPECT_EQ(GetJson("/api/v1/jobs/" + SubmitJob(spec))["workloads"][0]["title"], "conv2d 32x32x16");
}

TEST_F(ApiTest, ARunShowsItsReportAloneAndItsLatencyInLists) {
  const std::string id = RunPackages();
  const Json run = GetJson("/api/v1/jobs/" + id)["run"];
  EXPECT_EQ(run["kind"], "comparison");
  EXPECT_EQ(run["device"], "runner/cpu");
  EXPECT_NEAR(run["ratio"]["ratio"].get<double>(), 1.1, 1e-6);
  EXPECT_LE(run["ratio"]["low"], run["ratio"]["ratio"]);
  EXPECT_EQ(run["packages"][0]["kernels"][0]["nodes"][0], "/conv");
  const Json listed = GetJson("/api/v1/jobs")["jobs"][0];
  EXPECT_EQ(listed["job"], id);
  EXPECT_EQ(listed["run"]["packages"][1]["name"], "new.hone");
  EXPECT_FALSE(listed["run"]["packages"][1].contains("median_ms"));
  EXPECT_NEAR(listed["latency_ms_before"].get<double>(), 10.02, 1e-6);
  EXPECT_NEAR(listed["latency_ms_after"].get<double>(), 11.022, 1e-6);
}

TEST_F(ApiTest, AJobShowsItsNotice) {
  const std::string id = SubmitJob(FullSpec());
  const auto notice = [&] { return GetJson("/api/v1/jobs/" + id)["notice"]; };
  EXPECT_EQ(notice()["url"], "https://hooks.lab/done");
  EXPECT_EQ(notice()["delivered"], false);
  Post("/api/v1/jobs/" + id + "/cancel", "");
  v1::JobNotice told;
  told.set_attempts(1);
  told.set_problem("it answered 500");
  shell_->RecordNotice(id, told);
  EXPECT_EQ(notice()["problem"], "it answered 500");
  EXPECT_EQ(notice()["given_up"], false);
  told.set_closed(true);
  shell_->RecordNotice(id, told);
  EXPECT_EQ(notice()["given_up"], true);
  EXPECT_EQ(notice()["delivered"], false);
  told.clear_problem();
  told.set_attempts(2);
  shell_->RecordNotice(id, told);
  EXPECT_EQ(notice()["delivered"], true);
  EXPECT_EQ(notice()["attempts"], 2);
  EXPECT_EQ(GetJson("/api/v1/jobs/" + job_)["notice"], nullptr);
}

TEST_F(ApiTest, AWatchShowsItsNights) {
  EXPECT_EQ(GetJson("/api/v1/watches")["watches"], Json::array());
  AddWatch();
  Json row = GetJson("/api/v1/watches/nightly")["devices"][0];
  EXPECT_EQ(row["verdict"], nullptr);
  EXPECT_EQ(row["median_ms"], nullptr);
  MeasureNight();
  MeasureNight(0.012);
  row = GetJson("/api/v1/watches")["watches"][0]["devices"][0];
  EXPECT_EQ(row["device"], "nightboard/cpu");
  EXPECT_EQ(row["verdict"], "slower");
  EXPECT_EQ(row["cause"], "nothing that the agent reports has changed");
  EXPECT_NEAR(row["change"].get<double>(), 0.2, 1e-6);
  EXPECT_NEAR(row["median_ms"].get<double>(), 12.024, 1e-6);
  EXPECT_EQ(row["notice"]["due"], true);
  ASSERT_EQ(row["nights"].size(), 2u);
  EXPECT_EQ(row["nights"][1]["environment"]["governor"], "performance");
  EXPECT_EQ(row["nights"][1]["clock_mhz"], 1400);
  EXPECT_EQ(Post("/api/v1/watches/nightly/accept", R"({"device": "none"})").status, 404);
  const HttpResponse accepted = Post("/api/v1/watches/nightly/accept", R"({"device": "nightboard/cpu"})");
  row = Json::parse(accepted.body)["devices"][0];
  EXPECT_EQ(row["nights"][1]["accepted"], true);
  EXPECT_EQ(row["notice"]["due"], false);
  EXPECT_EQ(Get("/api/v1/watches/none").status, 404);
  EXPECT_EQ(Answer(Request("DELETE", "/api/v1/watches/nightly")).status, 200);
  EXPECT_EQ(Get("/api/v1/watches/nightly").status, 404);
}

TEST_F(ApiTest, AWatchOfAFileThatWasNotSentIsRefused) {
  const Json package = {{"digest", Sha256Hex("nowhere")}, {"bytes", 1}};
  const Json body = {{"name", "n"}, {"devices", {"board"}}, {"run", {{"packages", Json::array({package})}}}};
  const HttpResponse refused = Post("/api/v1/watches", body.dump());
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("was not sent to the tracker"));
  EXPECT_EQ(Post("/api/v1/watches", R"({"nonsense": 1})").status, 400);
}

TEST_F(ApiTest, JobsComeInPagesTheNewestFirst) {
  const std::string second = SubmitJob("second"), third = SubmitJob("third");
  const Json first = GetJson("/api/v1/jobs?limit=2");
  ASSERT_THAT(first["jobs"], SizeIs(2));
  EXPECT_EQ(first["jobs"][0]["job"], third);
  EXPECT_TRUE(first["more"]);
  const Json last = GetJson("/api/v1/jobs?limit=2&after=" + second);
  ASSERT_THAT(last["jobs"], SizeIs(1));
  EXPECT_EQ(last["jobs"][0]["job"], job_);
  EXPECT_FALSE(last["more"]);
  Post("/api/v1/jobs/" + third + "/cancel", "");
  EXPECT_THAT(GetJson("/api/v1/jobs?state=open")["jobs"], SizeIs(2));
  EXPECT_THAT(GetJson("/api/v1/jobs")["jobs"], SizeIs(3));
  EXPECT_EQ(Get("/api/v1/jobs?after=none").status, 404);
  for (const char* bad : {"limit=0", "limit=501", "limit=x", "state=ended", "limit=1&limit=2"}) {
    EXPECT_EQ(Get(std::string("/api/v1/jobs?") + bad).status, 400) << bad;
  }
}

TEST_F(ApiTest, JobsAreFoundByTheirModel) {
  v1::JobSpec run;
  run.set_request_id("request-run");
  run.set_name("net.hone");
  for (const char* package : {"net.hone", "net.hone", "other.hone"}) {
    v1::FileName* file = run.mutable_run()->add_packages();
    file->set_name(package);
    file->set_digest(std::string(64, 'a'));
    file->set_bytes(1);
  }
  EXPECT_EQ(ModelsOf(run), (std::vector<std::string>{"net", "other"}));
  const std::string tuned = SubmitJob("net.onnx"), other = SubmitJob("other.onnx");
  const Json found = GetJson("/api/v1/jobs?model=net");
  ASSERT_THAT(found["jobs"], SizeIs(1));
  EXPECT_EQ(found["jobs"][0]["job"], tuned);
  EXPECT_THAT(GetJson("/api/v1/jobs?model=ne")["jobs"], SizeIs(0));
  const Json models = GetJson("/api/v1/models")["models"];
  ASSERT_THAT(models, SizeIs(3));
  EXPECT_EQ(models[0], Json({{"model", "other"}, {"newest", other}, {"tunes", 1}, {"runs", 0}}));
}

TEST_F(ApiTest, APageOfOpenJobsMayBeginAfterOneThatEndedMeanwhile) {
  const std::string second = SubmitJob("second"), third = SubmitJob("third");
  const Json first = GetJson("/api/v1/jobs?state=open&limit=2");
  ASSERT_THAT(first["jobs"], SizeIs(2));
  EXPECT_TRUE(first["more"]);
  Post("/api/v1/jobs/" + second + "/cancel", "");
  const Json last = GetJson("/api/v1/jobs?state=open&limit=2&after=" + second);
  ASSERT_THAT(last["jobs"], SizeIs(1));
  EXPECT_EQ(last["jobs"][0]["job"], job_);
  EXPECT_FALSE(last["more"]);
  EXPECT_FALSE(GetJson("/api/v1/jobs?state=open&limit=1&after=" + third)["more"]) << "no other open one is older";
}

TEST_F(ApiTest, AListEntryEqualsTheJobWithoutItsWorkloads) {
  v1::JobSpec spec = FullSpec();
  spec.set_group("night");
  spec.set_submitted_by("ann");
  spec.set_priority(-1);
  spec.mutable_time_budget()->set_seconds(60);
  *spec.mutable_until() = ToProto(absl::Now() + absl::Hours(24));
  const std::string full = SubmitJob(spec);
  const Json jobs = GetJson("/api/v1/jobs")["jobs"];
  ASSERT_THAT(jobs, SizeIs(2));
  for (const Json& line : jobs) {
    Json whole = GetJson("/api/v1/jobs/" + line["job"].get<std::string>());
    if (!whole["confirmation"].is_null()) whole["confirmation"]["packages"] = Json::array();  // lists have no reports
    for (const auto& [field, value] : line.items()) EXPECT_EQ(whole[field], value) << field;
  }
  const std::vector<v1::Job> lines = GetJobs(*shell_, {job_, full});
  ASSERT_THAT(lines, SizeIs(2));
  for (const v1::Job& line : lines) {
    EXPECT_TRUE(line.spec().workloads().empty());
    EXPECT_TRUE(line.progress().workloads().empty());
  }
}

TEST_F(ApiTest, ADeviceTellsWhatItMeasures) {
  const Json device = GetJson("/api/v1/devices")["devices"][0];
  EXPECT_EQ(device["device"], "board/cpu");
  EXPECT_EQ(device["activity"], "measuring");
  EXPECT_EQ(device["running"]["job"], job_);
  EXPECT_EQ(device["running"]["workload"], workload_);
  EXPECT_EQ(device["golden"]["us"], 10);
  EXPECT_EQ(device["sandbox"]["missing"]["network"], "no namespaces");
  EXPECT_EQ(device["candidates"], 3);
}

TEST_F(ApiTest, AWorkloadIsItsTrialsAndItsWinners) {
  const Json workload = GetJson("/api/v1/workloads/" + workload_ + "?limit=2");
  ASSERT_THAT(workload["points"], SizeIs(2));
  EXPECT_TRUE(workload["more"]);
  EXPECT_EQ(workload["points"][0]["kind"], "timed");
  EXPECT_EQ(workload["points"][0]["median_ms"], 1);
  EXPECT_EQ(workload["points"][0]["predicted_ms"], nullptr);
  EXPECT_EQ(workload["points"][1]["predicted_ms"], 2);
  EXPECT_EQ(workload["points"][1]["device"], 0);
  EXPECT_THAT(workload["devices"], SizeIs(1));
  EXPECT_EQ(workload["devices"][0], workload["best"][0]["device"]);
  EXPECT_EQ(workload["text"], "w");
  EXPECT_THAT(workload["best"], SizeIs(1));
  const Json rest = GetJson("/api/v1/workloads/" + workload_ + "?after_row=2");
  ASSERT_THAT(rest["points"], SizeIs(1));
  EXPECT_EQ(rest["points"][0]["kind"], "wrong_output");
  EXPECT_EQ(rest["points"][0]["median_ms"], nullptr);
  EXPECT_FALSE(rest.contains("best"));
  EXPECT_THAT(GetJson("/api/v1/workloads/" + workload_ + "?kind=wrong_output")["points"], SizeIs(1));
  const Json none = GetJson("/api/v1/workloads/" + workload_ + "?confirmed=1");
  EXPECT_THAT(none["points"], SizeIs(0));
  EXPECT_EQ(none["operator"], "matmul") << "whichever points are asked for";
  EXPECT_EQ(none["flops"], 2e6);
}

TEST_F(ApiTest, AWorkloadWithoutRecordsIsNotFoundAndNoPathIsShown) {
  for (const char* address : {"/api/v1/workloads/none", "/api/v1/workloads/none/importance"}) {
    const HttpResponse missing = Get(address);
    EXPECT_EQ(missing.status, 404);
    EXPECT_THAT(missing.body, HasSubstr("there are no records of workload none"));
    EXPECT_THAT(missing.body, Not(HasSubstr(folder_.path().string())));
  }
}

TEST_F(ApiTest, TheNewestPointsOfAWorkloadComeFirstWhereAskedFor) {
  const std::string newest = "/api/v1/workloads/" + workload_ + "?order=newest&limit=2";
  const Json first = GetJson(newest);
  ASSERT_THAT(first["points"], SizeIs(2));
  EXPECT_EQ(first["points"][0]["row"], 3);
  EXPECT_EQ(first["points"][1]["row"], 2);
  EXPECT_TRUE(first["more"]);
  EXPECT_EQ(first["best"][0]["records"], 3) << "of all, whichever points come";
  const Json before = GetJson(newest + "&before_row=2");
  ASSERT_THAT(before["points"], SizeIs(1));
  EXPECT_EQ(before["points"][0]["row"], 1);
  EXPECT_FALSE(before["more"]);
  EXPECT_FALSE(before.contains("best"));
  EXPECT_THAT(GetJson(newest + "&after_row=2")["points"], SizeIs(1));
  for (const char* bad : {"order=oldest", "before_row=2", "order=newest&before_row=x"}) {
    EXPECT_EQ(Get("/api/v1/workloads/" + workload_ + "?" + bad).status, 400) << bad;
  }
}

TEST_F(ApiTest, NewerTrialsOfAnotherDeviceHideNoneThatAreAskedFor) {
  AddRecord("older/1", "asked for", "a/cpu");
  AddRecord("newer/1", "another", "b/cpu");
  const std::string importance = "/api/v1/workloads/" + workload_ + "/importance?limit=1";
  EXPECT_EQ(GetJson(importance)["trials"], 1);
  EXPECT_EQ(GetJson(importance + "&device=asked+for")["trials"], 1);
  EXPECT_EQ(GetJson(importance + "&device=none")["trials"], 0);
}

TEST_F(ApiTest, DriftCanBeAskedForOneOfSeveralEqualBoards) {
  const std::string fingerprint = store_->Query({.limit = 1})->rows.at(0).record.key.device_fingerprint;
  for (int i = 0; i < 20; ++i) AddRecord("twin/" + std::to_string(i), fingerprint, "twin/cpu");
  const Json points = GetJson("/api/v1/records/drift?limit=2&measured_by=board/cpu")["points"];
  ASSERT_THAT(points, SizeIs(2));
  for (const Json& point : points) EXPECT_EQ(point["measured_by"], "board/cpu");
  EXPECT_THAT(GetJson("/api/v1/records/drift?measured_by=twin/cpu")["points"], SizeIs(20));
  EXPECT_THAT(GetJson("/api/v1/records/drift?measured_by=nobody")["points"], SizeIs(0));
}

TEST_F(ApiTest, ImportanceOfDecisionsAndDriftOfDevicesAreShown) {
  const Json importance = GetJson("/api/v1/workloads/" + workload_ + "/importance");
  EXPECT_EQ(importance["trials"], 2);  // the third one failed
  EXPECT_EQ(importance["decisions"][0]["name"], "tile");
  EXPECT_EQ(importance["decisions"][0]["values"][0]["best_ms"], 1);
  EXPECT_EQ(GetJson("/api/v1/workloads/" + workload_ + "/importance?target=none")["trials"], 0);
  EXPECT_EQ(Get("/api/v1/workloads/none/importance").status, 404);
  EXPECT_THAT(GetJson("/api/v1/records/drift")["points"], SizeIs(2));
  EXPECT_THAT(GetJson("/api/v1/records/drift?limit=1")["points"], SizeIs(1));
  EXPECT_THAT(GetJson("/api/v1/records/drift?device=none")["points"], SizeIs(0));
  EXPECT_EQ(Get("/api/v1/records/drift?limit=1001").status, 400);
}

TEST_F(ApiTest, ACandidateIsTheWholeRecord) {
  const Json candidate = GetJson("/api/v1/candidates/3");
  EXPECT_EQ(candidate["row"], 3);
  EXPECT_EQ(candidate["failure"]["text"], "off by 2");
  EXPECT_EQ(candidate["workload"]["text"], "w");
  EXPECT_THAT(candidate["command"].get<std::string>(),
              HasSubstr("hone records query --workload " + workload_ + " --after 2"));
  for (const char* bad : {"0", "4", "-1", "x", "1x", "99999999999999999999"}) {
    EXPECT_EQ(Get(std::string("/api/v1/candidates/") + bad).status, 404) << bad;
  }
}

TEST_F(ApiTest, SeedsOf64BitsAreAlsoGivenAsText) {
  v1::JobSpec spec = SpecOf("seeded");
  spec.set_seed(~uint64_t{0});
  constexpr char kMost[] = "18446744073709551615";
  EXPECT_EQ(GetJson("/api/v1/jobs/" + SubmitJob(spec))["seed_text"], kMost);
  EXPECT_EQ(GetJson("/api/v1/candidates/1")["seed_text"], kMost);
  EXPECT_EQ(GetJson("/api/v1/records")["records"][0]["seed_text"], kMost);
  EXPECT_EQ(GetJson("/api/v1/candidates/1")["seed"], ~uint64_t{0});
}

TEST_F(ApiTest, RecordsAreSearchedExportedAndCounted) {
  EXPECT_THAT(GetJson("/api/v1/records")["records"], SizeIs(3));
  EXPECT_THAT(GetJson("/api/v1/records?kind=failed")["records"], SizeIs(1));
  EXPECT_THAT(GetJson("/api/v1/records?kind=timed&limit=1")["records"], SizeIs(1));
  EXPECT_THAT(GetJson("/api/v1/records?workload=e")["records"], SizeIs(0));
  EXPECT_EQ(GetJson("/api/v1/records?confirmed=0")["records"], GetJson("/api/v1/records")["records"]);
  EXPECT_EQ(Get("/api/v1/records?confirmed=1").status, 200);
  EXPECT_THAT(Get("/api/v1/records?confirmed=2").body, HasSubstr("confirmed=2: give a number from 0 to 1"));
  EXPECT_EQ(Get("/api/v1/records?confirmed=2").status, 400);
  EXPECT_EQ(Get("/api/v1/records?kind=bad").status, 400);
  EXPECT_EQ(Get("/api/v1/records?limit=1001").status, 400);
  const HttpResponse lines = Get("/api/v1/records/export?limit=2");
  EXPECT_EQ(lines.type, "application/x-ndjson");
  EXPECT_EQ(std::count(lines.body.begin(), lines.body.end(), '\n'), 2);
  ASSERT_THAT(lines.headers, SizeIs(1));
  EXPECT_EQ(lines.headers[0].second, "2");
  EXPECT_EQ(GetJson("/api/v1/records/stats")["failed"]["wrong_output"], 1);
}

TEST_F(ApiTest, WinnersComeInPages) {
  const Json best = GetJson("/api/v1/records/best");
  ASSERT_THAT(best["best"], SizeIs(1));
  EXPECT_EQ(best["next"], nullptr);
  EXPECT_EQ(best["best"][0]["records"], 3);
  EXPECT_THAT(GetJson("/api/v1/records/best?after=999.1.1.1")["best"], SizeIs(0));
  for (const char* bad : {"1", "1.2.3", "1.2.3.4.5", "a.b.c.d", "1.2.3.4x"}) {
    EXPECT_EQ(Get(std::string("/api/v1/records/best?after=") + bad).status, 400) << bad;
  }
}

TEST_F(ApiTest, TheOverviewCounts) {
  const Json overview = GetJson("/api/v1/overview");
  EXPECT_EQ(overview["jobs"]["running"], 1);
  EXPECT_EQ(overview["devices"]["measuring"], 1);
  EXPECT_EQ(overview["outcomes"]["timed"], 2);
  EXPECT_EQ(overview["trials_per_second"], 2);
  EXPECT_EQ(overview["running"][0]["job"], job_);
  EXPECT_TRUE(overview["storing"]);
}

}  // namespace
}  // namespace hone::tracker
