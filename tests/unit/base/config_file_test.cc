// SPDX-License-Identifier: Apache-2.0
#include "base/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kKnown = {"listen", "pki", "keep-jobs", "label"};

std::string WhyNot(std::string_view text) {
  const auto entries = ParseConfig("tracker.conf", text, kKnown);
  return entries.ok() ? "" : std::string(entries.status().message());
}

TEST(ConfigFile, ReadsWordsTextsAndLists) {
  const auto entries = ParseConfig("tracker.conf",
                                   "# a comment\n"
                                   "listen = \"0.0.0.0:9190\"  # another\n"
                                   "\n"
                                   "pki='/var/lib/a b/#1'\r\n"
                                   "\tkeep-jobs = 10\n"
                                   "label = [\"a=1, 2\",  # the first\n  room, ]",
                                   kKnown);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 4);
  EXPECT_THAT((*entries)[0].values, ElementsAre("0.0.0.0:9190"));
  EXPECT_THAT((*entries)[1].values, ElementsAre("/var/lib/a b/#1"));
  EXPECT_THAT((*entries)[2].values, ElementsAre("10"));
  EXPECT_THAT((*entries)[3].values, ElementsAre("a=1, 2", "room"));
  EXPECT_EQ((*entries)[2].key, "keep-jobs");
  EXPECT_EQ((*entries)[2].line, 5);
  EXPECT_EQ((*entries)[3].line, 6);
}

TEST(ConfigFile, EscapesInDoubleQuotesOnly) {
  EXPECT_THAT(ParseConfig("f", R"(pki = "a\"b\\c")", kKnown)->front().values, ElementsAre(R"(a"b\c)"));
  EXPECT_THAT(ParseConfig("f", R"(pki = 'a\c')", kKnown)->front().values, ElementsAre(R"(a\c)"));
  EXPECT_THAT(WhyNot(R"(pki = "a\n")"), HasSubstr("tracker.conf:1: in \"...\", \\ may stand only before"));
}

TEST(ConfigFile, AnUnknownKeyIsAnErrorWithItsLineAndTheNearest) {
  EXPECT_EQ(WhyNot("pki = a\n\nlisen = b\n"),
            "tracker.conf:3: there is no option 'lisen'; the nearest one is 'listen'");
  EXPECT_EQ(WhyNot("keep_jobs = 1"), "tracker.conf:1: there is no option 'keep_jobs'; the nearest one is 'keep-jobs'");
}

TEST(ConfigFile, ErrorNamesTheLine) {
  EXPECT_THAT(WhyNot("[tracker]\n"), HasSubstr("tracker.conf:1: sections are not supported"));
  EXPECT_THAT(WhyNot("\nlisten\n"), HasSubstr("tracker.conf:2: write OPTION = VALUE"));
  EXPECT_THAT(WhyNot("= 5"), HasSubstr("write OPTION = VALUE"));
  EXPECT_THAT(WhyNot("listen = \n"), HasSubstr("the value is missing"));
  EXPECT_THAT(WhyNot("listen = a b\n"), HasSubstr("unexpected text after the value"));
  EXPECT_THAT(WhyNot("listen = \"a\nb\""), HasSubstr("tracker.conf:1: the closing \" is missing"));
  EXPECT_THAT(WhyNot("label = [a\nb]"), HasSubstr("tracker.conf:2: a ',' or ']' is missing"));
  EXPECT_THAT(WhyNot("\nlabel = [a,\n"), HasSubstr("tracker.conf:2: the list that begins here has no ']'"));
  EXPECT_THAT(WhyNot("pki = a\nlisten = b\npki = c"),
              HasSubstr("tracker.conf:3: 'pki' is given twice; the first is in line 1"));
}

}  // namespace
}  // namespace hone
