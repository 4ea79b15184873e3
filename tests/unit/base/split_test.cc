// SPDX-License-Identifier: Apache-2.0
#include "base/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SplitTest, KeepsEmptyParts) {
  EXPECT_THAT(SplitAt("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(SplitAt("a,", ','), ElementsAre("a", ""));
  EXPECT_THAT(SplitAt("", ','), ElementsAre(""));
}

TEST(SplitTest, NonEmptyPartsOnly) {
  EXPECT_THAT(SplitNonEmpty(" a  b", ' '), ElementsAre("a", "b"));
  EXPECT_THAT(SplitNonEmpty("  ", ' '), IsEmpty());
}

TEST(SplitTest, TrimsBothEnds) {
  EXPECT_EQ(TrimBlanks(" \ta b\r\n"), "a b");
  EXPECT_EQ(TrimBlanks(" \t "), "");
}

TEST(SplitTest, RemovesOnlyAWholePrefix) {
  std::string_view text = "key=1";
  EXPECT_FALSE(RemovePrefix(text, "keys"));
  EXPECT_EQ(text, "key=1");
  EXPECT_TRUE(RemovePrefix(text, "key="));
  EXPECT_EQ(text, "1");
}

}  // namespace
}  // namespace hone
