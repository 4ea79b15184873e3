// SPDX-License-Identifier: Apache-2.0
#include "base/parse_duration.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(ParseDurationTest, HoursAndDays) {
  EXPECT_EQ(ParsePositiveDuration("1h30m"), absl::Minutes(90));
  EXPECT_EQ(ParsePositiveDuration("400d"), absl::Hours(400 * 24));
  EXPECT_EQ(ParsePositiveDuration("0.5d"), absl::Hours(12));
  for (const char* wrong :
       {"", "d", "1", "10 m", "-1h", "0s", "inf", "infd", "1d12h", "1hd", "99999999999999999999d"}) {
    EXPECT_EQ(ParsePositiveDuration(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace hone
