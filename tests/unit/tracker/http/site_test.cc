// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/tracker/http/site_fixture.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;

TEST_F(SiteTest, EveryRouteNeedsAMethodOfTheAccessTableOrNoRole) {
  const std::set<std::string> for_anybody = {"POST /api/v1/session", "GET /healthz"};
  for (const Route& route : Routes()) {
    const std::string address = std::string(route.method) + " " + std::string(route.path);
    EXPECT_EQ(route.needs.empty(), for_anybody.contains(address)) << address;
    EXPECT_TRUE(route.needs.empty() || HasRule(route.needs)) << address;
    // A GET must not change anything.
    const bool changes = route.method != "GET";
    EXPECT_EQ(changes, route.method == "POST" || route.method == "PUT" || route.method == "DELETE") << address;
  }
}

TEST_F(SiteTest, WithoutAKeyNothingIsShown) {
  for (const Route& route : Routes()) {
    if (route.needs.empty()) continue;
    HttpRequest request = Request(std::string(route.method), std::string(route.path));
    request.headers.erase("authorization");
    EXPECT_EQ(Answer(request).status, 401) << route.path;
    request.headers["authorization"] = "Bearer 0000";
    EXPECT_EQ(Answer(request).status, 401) << route.path;
  }
}

TEST_F(SiteTest, NamesTheAllowedMethods) {
  EXPECT_EQ(Get("/api/v1/nothing").status, 404);
  EXPECT_EQ(Get("/api/v1/session/more").status, 404);
  const HttpResponse refusal = Answer(Request("PUT", "/api/v1/session"));
  EXPECT_EQ(refusal.status, 405);
  EXPECT_EQ(refusal.headers.at(0).second, "DELETE, GET, POST");
  EXPECT_EQ(Get("/api/../etc").status, 400);
  HttpRequest foreign = Request("GET", "/api/v1/session");
  foreign.headers["host"] = "evil.example";
  EXPECT_EQ(Answer(foreign).status, 403);
}

TEST_F(SiteTest, ABodyIsAnObjectOfTheRightType) {
  HttpRequest request = Request("POST", "/api/v1/agents/board/drain");
  request.body = R"({"reason": "dust"})";
  EXPECT_EQ(Answer(request).status, 400);
  request.headers["content-type"] = "text/plain";
  EXPECT_EQ(Answer(request).status, 400);
  request.headers["content-type"] = "application/json; charset=utf-8";
  EXPECT_EQ(Answer(request).status, 200);
  for (const char* body : {"[1]", "{", "\"x\"", "{\"reason\": 1}"}) {
    request.body = body;
    EXPECT_EQ(Answer(request).status, 400) << body;
  }
}

// A form without fields has no body but still has a content type.
TEST_F(SiteTest, AFormChangesNothing) {
  const std::string id = SubmitJob("one");
  HttpRequest request = Request("POST", "/api/v1/jobs/" + id + "/cancel");
  for (const char* type : {"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"}) {
    request.headers["content-type"] = type;
    EXPECT_EQ(Answer(request).status, 400) << type;
  }
  EXPECT_NE(Job(id).state(), v1::JOB_STATE_CANCELLED);
  request.headers["content-type"] = "application/json";
  EXPECT_EQ(Answer(request).status, 200);
  HttpRequest reading = Request("GET", "/api/v1/jobs");
  reading.headers["content-type"] = "text/plain";
  EXPECT_EQ(Answer(reading).status, 200) << "nothing of it is read";
}

TEST_F(SiteTest, AJobIsCancelledOnce) {
  const std::string id = SubmitJob("one");
  EXPECT_EQ(Answer(Request("POST", "/api/v1/jobs/" + id + "/cancel")).status, 200);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Answer(Request("POST", "/api/v1/jobs/" + id + "/cancel")).status, 200);
  EXPECT_EQ(Answer(Request("POST", "/api/v1/jobs/none/cancel")).status, 404);
}

TEST_F(SiteTest, AnAgentIsDrainedAndReleased) {
  Register("board");
  EXPECT_EQ(Post("/api/v1/agents/board/drain", R"({"reason": "dust"})").status, 200);
  EXPECT_TRUE(shell_->ListDevices({}).devices(0).drained());
  EXPECT_THAT(shell_->ListDevices({}).devices(0).health_reason(), HasSubstr("dust"));
  EXPECT_EQ(Post("/api/v1/agents/board/release", "").status, 200);
  EXPECT_FALSE(shell_->ListDevices({}).devices(0).drained());
  EXPECT_EQ(Post("/api/v1/agents/board/drain", R"({"reason": ")" + std::string(2000, 'x') + "\"}").status, 400);
}

}  // namespace
}  // namespace hone::tracker
