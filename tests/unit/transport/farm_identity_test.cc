// SPDX-License-Identifier: Apache-2.0
#include "transport/farm_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hone {
namespace {

using ::testing::HasSubstr;

TEST(FarmIdentityTest, OneUriHoldsRoleAndName) {
  for (const Role role : {Role::kAgent, Role::kTuner, Role::kClient, Role::kViewer, Role::kAdmin}) {
    const std::string uri = "hone://farm/" + std::string(Name(role)) + "/board-7.lab_2";
    const auto identity = IdentityFromUris({"https://example.org", uri});
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_EQ(identity->role, role);
    EXPECT_EQ(identity->name, "board-7.lab_2");
  }
}

TEST(FarmIdentityTest, OtherUrisAreRefused) {
  const std::string long_name(65, 'x');
  for (const std::string& uri :
       {std::string(), std::string("hone://farm/"), std::string("hone://farm/agent"), std::string("hone://farm/agent/"),
        std::string("hone://farm/king/a"), std::string("hone://farm/Agent/a"), std::string("hone://farm/agent/a/b"),
        std::string("hone://farm/agent/a b"), std::string("hone://farm/agent/-a"), std::string("hone://farm/agent/a\n"),
        std::string("hone://farm/agent/a\0b", 21), std::string("hone://farm/agent/\xc3\xa4"),
        std::string("hone://other/agent/a"), std::string(" hone://farm/agent/a"), "hone://farm/agent/" + long_name}) {
    EXPECT_EQ(IdentityFromUris({uri}).status().code(), absl::StatusCode::kUnauthenticated) << uri;
  }
  EXPECT_FALSE(IdentityFromUris({}).ok());
  EXPECT_FALSE(IdentityFromUris({"hone://farm/agent/a", "hone://farm/agent/b"}).ok());
  EXPECT_FALSE(IdentityFromUris({"hone://farm/king/a", "hone://farm/agent/b"}).ok());
}

TEST(FarmIdentityTest, WhatIsPrintedIsRead) {
  const std::string uri = UriOf({Role::kTuner, "box-1"});
  EXPECT_EQ(uri, "hone://farm/tuner/box-1");
  EXPECT_EQ(IdentityFromUris({uri})->name, "box-1");
  EXPECT_EQ(ParseRole("viewer"), Role::kViewer);
  EXPECT_EQ(ParseRole("king"), std::nullopt);
  EXPECT_TRUE(CheckFarmName("board-7.lab_2").ok());
  EXPECT_THAT(std::string(CheckFarmName("a b").message()), HasSubstr("'a b' cannot be a name"));
}

}  // namespace
}  // namespace hone
