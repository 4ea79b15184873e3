// SPDX-License-Identifier: Apache-2.0
#include "tracker/rate_limiter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hone::tracker {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

int Taken(RateLimiter& limiter, const std::string& key, absl::Time now) {
  int count = 0;
  while (count < 1000 && limiter.Take(key, now)) ++count;
  return count;
}

TEST(RateLimiterTest, LimitsBurstAndRate) {
  RateLimiter limiter({10, 30});
  EXPECT_EQ(Taken(limiter, "a", kNow), 30);
  EXPECT_EQ(Taken(limiter, "a", kNow + absl::Milliseconds(50)), 0);
  EXPECT_EQ(Taken(limiter, "a", kNow + absl::Milliseconds(550)), 5);
  EXPECT_EQ(Taken(limiter, "b", kNow), 30) << "one counts for itself";
  EXPECT_EQ(Taken(limiter, "a", kNow + absl::Hours(1)), 30);
}

TEST(RateLimiterTest, AClockThatGoesBackAddsNoTokens) {
  RateLimiter limiter({10, 30});
  EXPECT_EQ(Taken(limiter, "a", kNow), 30);
  EXPECT_EQ(Taken(limiter, "a", kNow - absl::Hours(1)), 0);
  EXPECT_EQ(Taken(limiter, "a", kNow + absl::Seconds(1)), 10);
}

TEST(RateLimiterTest, UnusedKeysAreForgotten) {
  RateLimiter limiter({10, 30});
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_TRUE(limiter.Take(fmt::format("{}", i), kNow + absl::Seconds(i)));
  }
  EXPECT_LT(limiter.keys(), 1000u);
}

}  // namespace
}  // namespace hone::tracker
