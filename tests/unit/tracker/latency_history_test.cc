// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/latency_history.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hone::tracker {
namespace {

TEST(LatencyHistoryTest, HasFewPointsOverTheWholeTimeHoweverManyCome) {
  LatencyHistory history;
  const absl::Time start = absl::FromUnixSeconds(1000);
  constexpr int kReports = 100'000;
  for (int i = 0; i < kReports; ++i) {
    history.Add({start + absl::Seconds(i), static_cast<double>(i), i, 1.0 / (i + 1)});
    ASSERT_LE(history.points().size(), LatencyHistory::kPointsMax);
    ASSERT_EQ(history.points().back().trials, i) << "the newest one is always there";
  }
  EXPECT_GE(history.points().size(), LatencyHistory::kPointsMax / 4);
  EXPECT_EQ(history.points().front().trials, 0);
  absl::Duration widest;
  for (size_t i = 1; i < history.points().size(); ++i) {
    const absl::Duration gap = history.points()[i].at - history.points()[i - 1].at;
    EXPECT_GT(gap, absl::ZeroDuration());
    widest = std::max(widest, gap);
  }
  EXPECT_LE(widest, absl::Seconds(kReports / 25)) << "points are spread over the time";
}

TEST(LatencyHistoryTest, FewReportsAreAllKept) {
  LatencyHistory history;
  for (int i = 0; i < 100; ++i) history.Add({absl::FromUnixSeconds(i), 0, i, 1});
  EXPECT_EQ(history.points().size(), 100u);
}

}  // namespace
}  // namespace hone::tracker
