// SPDX-License-Identifier: Apache-2.0
#include "base/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>

namespace hone {
namespace {

TEST(IdentityTest, AUserHasAName) {
  EXPECT_NE(UserName(), "");
  if (geteuid() != 0) GTEST_SKIP() << "how the others are called is not known here";
  EXPECT_EQ(UserName(), "root");
}

TEST(IdentityTest, IdsAre128BitsAndNeverTheSame) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = RandomId();
    EXPECT_THAT(id, testing::MatchesRegex("[0-9a-f]{32}"));
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 1000u);
}

}  // namespace
}  // namespace hone
