// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/notice_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;

TEST(NoticeUrl, IsParsed) {
  const NoticeUrl url = ParseNoticeUrl("https://hooks.lab:8443/a/b?c=d").value();
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host, "hooks.lab");
  EXPECT_EQ(url.port, "8443");
  EXPECT_EQ(url.target, "/a/b?c=d");
  EXPECT_EQ(ParseNoticeUrl("http://hooks.lab")->port, "80");
  EXPECT_EQ(ParseNoticeUrl("http://hooks.lab")->target, "/");
  EXPECT_EQ(ParseNoticeUrl("https://hooks.lab?x")->target, "/?x");
  EXPECT_EQ(ParseNoticeUrl("http://[::1]/a")->host, "[::1]");
  EXPECT_EQ(ParseNoticeUrl("http://[::1]:81/a")->port, "81");
}

TEST(NoticeUrl, RefusesAmbiguousUrls) {
  for (const char* url : {"", "hooks.lab/a", "ftp://hooks.lab/", "https://", "https:///a", "https://a@hooks.lab/",
                          "https://h:x/", "https://h:/", "https://h/a/../b", "https://h/%2E%2e/b", "https://h\\a",
                          "https://h/a b", "https://h/a\r\nX: y", "https://h/#a"}) {
    const auto parsed = ParseNoticeUrl(url);
    ASSERT_FALSE(parsed.ok()) << url;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
}

TEST(NoticeUrl, OnlyAllowedPrefixesMatch) {
  const std::vector<std::string> allowed = {"https://hooks.lab/hone", "http://127.0.0.1:80/x/"};
  for (const char* url :
       {"https://hooks.lab/hone", "https://hooks.lab/hone/a", "https://hooks.lab/hone?a", "http://127.0.0.1:80/x/y"}) {
    EXPECT_TRUE(CheckNoticeUrl(url, allowed).ok()) << url;
  }
  for (const char* url : {"https://hooks.lab/", "https://hooks.lab/honeypot", "http://hooks.lab/hone",
                          "https://hooks.lab.evil.net/hone", "http://127.0.0.1:80/x", "http://127.0.0.1:8080/x/"}) {
    const absl::Status status = CheckNoticeUrl(url, allowed);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << url;
    EXPECT_THAT(std::string(status.message()), HasSubstr("it allows https://hooks.lab/hone, http://127.0.0.1:80/x/"));
  }
  EXPECT_EQ(CheckNoticeUrl("https://hooks.lab.evil.net", {"https://hooks.lab"}).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(CheckNoticeUrl("https://hooks.lab/", {}).message()), HasSubstr("it allows none"));
}

}  // namespace
}  // namespace hone::tracker
