// SPDX-License-Identifier: Apache-2.0
// What commands do with a farm, over HTTP: files that come and go, and jobs that are submitted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/digest.h"
#include "base/identity.h"
#include "tests/unit/tracker/http/site_fixture.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ApiFilesTest : public SiteTest {
 protected:
  Json PostJson(const std::string& target, const Json& body) const {
    const HttpResponse response = Post(target, body.dump());
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body, nullptr, false);
  }
  Json Offer(const std::string& contents, const std::vector<std::string>& chunks) const {
    Json list = Json::array();
    for (const std::string& chunk : chunks) list.push_back({{"digest", Sha256Hex(chunk)}, {"bytes", chunk.size()}});
    return PostJson("/api/v1/files", {{"digest", Sha256Hex(contents)}, {"chunks", list}});
  }
};

TEST_F(ApiFilesTest, AWholeFileComesAndGoes) {
  // More than one chunk, so that the tracker cuts it.
  std::string contents(6 << 20, 'a');
  for (size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>((i * i) >> 7);
  const std::string file = "/api/v1/files/" + Sha256Hex(contents);
  EXPECT_EQ(Get(file).status, 404);
  EXPECT_EQ(Get(file + "/contents").status, 404);
  EXPECT_EQ(Put(file + "/contents", contents + "x").status, 400);
  ASSERT_EQ(Put(file + "/contents", contents).status, 200);
  EXPECT_EQ(Put(file + "/contents", contents).status, 200) << "again";
  const Json description = GetJson(file);
  EXPECT_EQ(description["bytes"], contents.size());
  ASSERT_GT(description["chunks"].size(), 1u);
  EXPECT_EQ(Get(file + "/contents").body, contents);
  EXPECT_EQ(Get(file + "/contents").type, "application/octet-stream");
  std::string chunks;
  for (size_t i = 0; i < description["chunks"].size(); ++i) {
    chunks += Get(file + "/chunks/" + std::to_string(i)).body;
  }
  EXPECT_EQ(chunks, contents);
  EXPECT_EQ(Get(file + "/chunks/99").status, 400);
  EXPECT_EQ(Get(file + "/chunks/x").status, 400);
}

TEST_F(ApiFilesTest, AnEmptyFileIsAFile) {
  const std::string file = "/api/v1/files/" + Sha256Hex("");
  EXPECT_EQ(Put(file + "/contents", "").status, 200);
  EXPECT_EQ(GetJson(file)["bytes"], 0);
  EXPECT_EQ(Get(file + "/contents").body, "");
}

TEST_F(ApiFilesTest, OnlyMissingChunksOfALargeFileTravel) {
  const std::string first(4 << 20, 'x'), last = "the end";
  const std::string contents = first + first + last, file = "/api/v1/files/" + Sha256Hex(contents);
  EXPECT_EQ(Offer(contents, {first, first, last})["missing"], Json::array({0, 2})) << "equal chunks travel once";
  EXPECT_THAT(Put(file + "/chunks/2", "another").body, HasSubstr("differ"));
  EXPECT_EQ(Put(file + "/chunks/7", last).status, 400);
  HttpResponse put = Put(file + "/chunks/0", first);
  EXPECT_EQ(Json::parse(put.body)["missing"], 1);
  EXPECT_EQ(Offer(contents, {first, first, last})["missing"], Json::array({2})) << "it resumes";
  EXPECT_EQ(Get(file).status, 404) << "not complete";
  put = Put(file + "/chunks/2", last);
  EXPECT_EQ(Json::parse(put.body)["missing"], 0);
  EXPECT_EQ(GetJson(file)["bytes"], contents.size());
  EXPECT_EQ(Offer(contents, {first, first, last})["missing"], Json::array());
}

TEST_F(ApiFilesTest, OffersThatMakeNoSenseAreRefused) {
  const std::string digest = Sha256Hex("a");
  for (const char* chunks :
       {"1", "[1]", "[{}]", R"([{"digest": "x", "bytes": 1}])", R"([{"digest": 1, "bytes": 1}])"}) {
    EXPECT_EQ(Post("/api/v1/files", R"({"digest": ")" + digest + R"(", "chunks": )" + chunks + "}").status, 400)
        << chunks;
  }
  EXPECT_EQ(Post("/api/v1/files", R"({"digest": "x", "chunks": []})").status, 400);
  EXPECT_EQ(Post("/api/v1/files", "{}").status, 400);
  EXPECT_EQ(Put("/api/v1/files/" + digest + "/chunks/0", "a").status, 404) << "it was not announced";
}

TEST_F(ApiFilesTest, ARunIsSubmittedAsJson) {
  const std::string digest = Sha256Hex("package");
  EXPECT_EQ(Put("/api/v1/files/" + digest + "/contents", "package").status, 200);
  const Json package = {{"digest", digest}, {"bytes", 7}, {"name", "net.hone"}};
  const Json run = {{"packages", Json::array({package})}, {"seconds", 10}, {"profile", true}};
  Json body = {{"name", "net.hone"}, {"devices", Json::array({"rpi4"})}, {"run", run}};
  const Json job = PostJson("/api/v1/jobs", body);
  EXPECT_EQ(job["state"], "queued");
  EXPECT_EQ(job["run"]["kind"], "profile");
  EXPECT_EQ(job["run"]["packages"][0]["digest"], digest);
  EXPECT_EQ(job["devices"][0], "rpi4");
  EXPECT_EQ(job["submitted_by"], UserName());
  EXPECT_NE(PostJson("/api/v1/jobs", body)["job"], job["job"]) << "each is a job of its own";
  body["request_id"] = "once";
  const Json once = PostJson("/api/v1/jobs", body);
  EXPECT_EQ(PostJson("/api/v1/jobs", body)["job"], once["job"]);
  EXPECT_THAT(GetJson("/api/v1/jobs")["jobs"], SizeIs(3));
}

TEST_F(ApiFilesTest, ATuningJobIsSubmittedAsJson) {
  const Json workload = {{"text", "w"}, {"digest", Sha256Hex("w")}, {"count", 1}};
  const Json body = {{"name", "net.onnx"},
                     {"target", "cpu"},
                     {"threads", 1},
                     {"trials", 64},
                     {"time_budget", "600s"},
                     {"submitted_by", "somebody else"},
                     {"workloads", Json::array({workload})}};
  const Json job = PostJson("/api/v1/jobs", body);
  EXPECT_EQ(job["trials_limit"], 64);
  EXPECT_EQ(job["seconds_limit"], 600);
  EXPECT_EQ(job["submitted_by"], UserName()) << "whatever the body says";
  EXPECT_EQ(Job(job["job"]).spec().workloads(0).text(), "w");
}

TEST_F(ApiFilesTest, BodiesThatAreNoJobsAreRefusedWithAReason) {
  const auto refusal = [&](const std::string& body) {
    const HttpResponse response = Post("/api/v1/jobs", body);
    EXPECT_EQ(response.status, 400) << body;
    return Json::parse(response.body)["error"]["message"].get<std::string>();
  };
  EXPECT_THAT(refusal("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(""), HasSubstr("the body is no job"));
  EXPECT_THAT(refusal(R"({"nmae": "x"})"), HasSubstr("nmae"));
  EXPECT_THAT(refusal(R"({"trials": "many"})"), HasSubstr("trials"));
  EXPECT_THAT(refusal(R"({"name": "x"})"), HasSubstr("job has no target"));
  EXPECT_THAT(refusal(R"({"run": {"packages": []}})"), HasSubstr("the run has 0 packages"));
  const std::string deep = R"({"name": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_THAT(refusal(deep), HasSubstr("nested"));
}

TEST_F(ApiFilesTest, OnlyKnownCallersMaySendMuchAndOnlyWhereMuchIsTaken) {
  const auto limit = [&](const std::string& method, const std::string& target, bool known) {
    HttpRequest request = Request(method, target);
    if (!known) request.headers.erase("authorization");
    const absl::StatusOr<uint64_t> bytes = site_.BodyLimit(request);
    EXPECT_TRUE(bytes.ok() || absl::IsUnauthenticated(bytes.status())) << bytes.status();
    return bytes.value_or(0);
  };
  const std::string chunk = "/api/v1/files/" + Sha256Hex("a") + "/chunks/0";
  EXPECT_EQ(limit("PUT", chunk, true), uint64_t{4} << 20);
  EXPECT_EQ(limit("PUT", chunk, false), 0u);
  EXPECT_EQ(limit("GET", chunk, true), 0u);
  EXPECT_GE(limit("POST", "/api/v1/jobs", true), uint64_t{8} << 20);
  EXPECT_EQ(limit("POST", "/api/v1/session", true), 0u);
  EXPECT_EQ(limit("POST", "/nowhere", true), 0u);
  HttpRequest foreign = Request("POST", "/api/v1/jobs");
  foreign.headers["origin"] = "http://evil.example";
  EXPECT_TRUE(absl::IsPermissionDenied(site_.BodyLimit(foreign).status()));
}

}  // namespace
}  // namespace hone::tracker
