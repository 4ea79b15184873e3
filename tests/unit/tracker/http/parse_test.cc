// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ParseTarget, TakesPathAndQueryApart) {
  const auto target = ParseTarget("/api/v1/jobs/j%201?limit=10&name=a+b%26c&flag&");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_THAT(target->path, ElementsAre("api", "v1", "jobs", "j 1"));
  EXPECT_THAT(target->query, ElementsAre(Pair("flag", ""), Pair("limit", "10"), Pair("name", "a b&c")));
  EXPECT_THAT(ParseTarget("/")->path, IsEmpty());
  EXPECT_THAT(ParseTarget("/?")->query, IsEmpty());
  EXPECT_THAT(ParseTarget("/jobs/")->path, ElementsAre("jobs"));
  EXPECT_THAT(ParseTarget("/%c3%a4")->path, ElementsAre("ä"));
  EXPECT_THAT(ParseTarget("/%41")->path, ElementsAre("A"));
}

TEST(ParseTarget, RefusesAmbiguousTargets) {
  for (const char* target : {"",     "x",      "http://a/b", "//a",     "/a//b", "/..",       "/a/../b", "/a/%2e%2e/b",
                             "/.",   "/a%2fb", "/a%5cb",     "/a\\b",   "/%00",  "/a%0d%0ab", "/%",      "/%4",
                             "/%zz", "/%ff",   "/?a=1&a=2",  "/?a=%ff", "/?%",   "/\x7f"}) {
    EXPECT_EQ(ParseTarget(target).status().code(), absl::StatusCode::kInvalidArgument) << target;
  }
  EXPECT_FALSE(ParseTarget("/" + std::string(10'000, 'a')).ok());
}

TEST(CookieIn, FindsTheOneOfThatName) {
  EXPECT_EQ(CookieIn("a=1; hone=x.y==; b=2", "hone"), "x.y==");
  EXPECT_EQ(CookieIn("hone=", "hone"), "");
  EXPECT_EQ(CookieIn("xhone=1; hon=2; hone2=3", "hone"), "");
  EXPECT_EQ(CookieIn("", "hone"), "");
  EXPECT_EQ(CookieIn("hone", "hone"), "");
}

TEST(HostIn, IsWithoutPortAndInLowerCase) {
  EXPECT_EQ(HostIn("Tracker.Lab:9191"), "tracker.lab");
  EXPECT_EQ(HostIn("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(HostIn("[::1]:80"), "::1");
  for (const char* bad : {"", "[::1", "a b", "user@host", "host:80x", "[::1]x", "a/b", "a:b"}) {
    EXPECT_EQ(HostIn(bad), "") << bad;
  }
}

}  // namespace
}  // namespace hone::tracker
