// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/unit/tracker/http/site_fixture.h"

namespace hone::tracker {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string> HeadersOf(const HttpResponse& response) {
  return {response.headers.begin(), response.headers.end()};
}

// Pages are served to every visitor, without a key.
class PagesTest : public SiteTest {
 protected:
  HttpResponse Open(const std::string& target, const std::string& header = "", const std::string& value = "") const {
    HttpRequest request = Request("GET", target);
    request.headers.erase("authorization");
    if (!header.empty()) request.headers[header] = value;
    return Answer(request);
  }
};

TEST_F(PagesTest, EveryViewIsTheIndex) {
  for (const char* view : {"/", "/index.html", "/jobs", "/jobs/j1", "/devices/board%20one", "/?a=b"}) {
    const HttpResponse page = Open(view);
    EXPECT_EQ(page.status, 200) << view;
    EXPECT_EQ(page.type, "text/html; charset=utf-8");
    EXPECT_THAT(page.body, HasSubstr("<title>a test</title>"));
    EXPECT_EQ(HeadersOf(page)["Cache-Control"], "no-cache");
  }
}

TEST_F(PagesTest, AMissingFileIsNotFound) {
  for (const char* target : {"/none.js", "/assets/none.css", "/api/v1/none", "/api", "/assets/app-1a2b.js.gz"}) {
    EXPECT_EQ(Open(target).status, 404) << target;
  }
  for (const char* target :
       {"/../index.html", "/assets/..%2findex.html", "/assets/%2e%2e/index.html", "//index.html"}) {
    EXPECT_EQ(Open(target).status, 400) << target;
  }
  EXPECT_EQ(Post("/", "").status, 404);
}

TEST_F(PagesTest, FilesAreRevalidatedAndCompressedOnRequest) {
  HttpResponse asset = Open("/assets/app-1a2b.js");
  EXPECT_EQ(asset.body, "console.log(\"a test\")\n");
  EXPECT_EQ(asset.type, "text/javascript; charset=utf-8");
  EXPECT_EQ(HeadersOf(asset)["Cache-Control"], "no-cache");
  EXPECT_EQ(HeadersOf(asset).count("Content-Encoding"), 0u);
  for (const char* takes : {"gzip", "br, gzip;q=0.5", "gzip, deflate"}) {
    asset = Open("/assets/app-1a2b.js", "accept-encoding", takes);
    EXPECT_EQ(asset.body, "what stands for the compressed file\n") << takes;
    EXPECT_EQ(HeadersOf(asset)["Content-Encoding"], "gzip");
  }
  for (const char* other : {"br", "gzip;q=0", "gzip;q=0, br", ""}) {
    EXPECT_EQ(Open("/assets/app-1a2b.js", "accept-encoding", other).body, "console.log(\"a test\")\n") << other;
  }
}

TEST_F(PagesTest, AnUnchangedFileIsNotSentAgain) {
  const std::string tag = HeadersOf(Open("/"))["ETag"];
  EXPECT_EQ(tag.size(), 18);
  const HttpResponse again = Open("/", "if-none-match", tag);
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(Open("/", "if-none-match", "\"other\"").status, 200);
}

TEST(Pages, WithoutFilesThereAreNone) {
  const std::vector<EmbeddedFile> none;
  EXPECT_FALSE(Pages(none).Find({}, *ParseTarget("/")).has_value());
}

}  // namespace
}  // namespace hone::tracker
