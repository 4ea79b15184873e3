// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/label.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::agent {
namespace {

TEST(ParseLabel, TakesANameAloneOrWithItsValue) {
  const auto alone = ParseLabel("rpi4");
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->name, "rpi4");
  EXPECT_EQ(alone->value, "");
  const auto valued = ParseLabel("path=/dev=x");
  ASSERT_TRUE(valued.ok()) << valued.status();
  EXPECT_EQ(valued->name, "path");
  EXPECT_EQ(valued->value, "/dev=x");
}

TEST(ParseLabel, RefusesCharactersOfDeviceSyntax) {
  for (const char* text :
       {"", "=", "=lab", "room=", "a,b", "room=a,b", "board/cpu", "my board", "room=my lab", "a\n"}) {
    const auto label = ParseLabel(text);
    ASSERT_FALSE(label.ok()) << text;
    EXPECT_THAT(std::string(label.status().message()), testing::HasSubstr("write NAME or NAME=VALUE")) << text;
  }
}

}  // namespace
}  // namespace hone::agent
