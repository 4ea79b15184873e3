// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/trials_by_minute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hone::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kMidnight = absl::FromUnixSeconds(1'700'006'400);

std::vector<int64_t> TrialsUntil(const TrialsByMinute& trials, absl::Duration after_midnight) {
  std::vector<int64_t> counts;
  for (const TrialsByMinute::Minute& minute : trials.Until(kMidnight + after_midnight)) {
    counts.push_back(minute.trials);
  }
  return counts;
}

TEST(TrialsByMinuteTest, CountsMinutesAndThoseWithoutTrials) {
  TrialsByMinute trials;
  EXPECT_THAT(TrialsUntil(trials, absl::Hours(1)), IsEmpty());
  trials.Add(3, kMidnight + absl::Seconds(5));
  EXPECT_THAT(TrialsUntil(trials, absl::Seconds(9)), IsEmpty()) << "the minute has hardly begun";
  EXPECT_THAT(TrialsUntil(trials, absl::Seconds(15)), ElementsAre(3));
  trials.Add(4, kMidnight + absl::Seconds(59.9));
  trials.Add(5, kMidnight + absl::Seconds(180));
  EXPECT_THAT(TrialsUntil(trials, absl::Seconds(185)), ElementsAre(7, 0, 0));
  EXPECT_THAT(TrialsUntil(trials, absl::Seconds(200)), ElementsAre(7, 0, 0, 5));
  const std::vector<TrialsByMinute::Minute> minutes = trials.Until(kMidnight + absl::Seconds(200));
  EXPECT_EQ(minutes.front().begin, kMidnight);
  EXPECT_EQ(minutes.front().length, absl::Minutes(1));
  EXPECT_EQ(minutes.back().length, absl::Seconds(20));
}

TEST(TrialsByMinuteTest, ForgetsMinutesOfMoreThanAnHourAgo) {
  TrialsByMinute trials;
  for (int minute = 0; minute < 1000; ++minute) trials.Add(minute, kMidnight + absl::Minutes(minute));
  const std::vector<int64_t> counts = TrialsUntil(trials, absl::Minutes(1000));
  ASSERT_EQ(counts.size(), 60u);
  EXPECT_EQ(counts.front(), 940);
  EXPECT_EQ(counts.back(), 999);
  EXPECT_EQ(TrialsUntil(trials, absl::Minutes(2000)), std::vector<int64_t>(60, 0));
}

TEST(TrialsByMinuteTest, AClockThatIsSetBackLosesNothing) {
  TrialsByMinute trials;
  trials.Add(1, kMidnight + absl::Minutes(5));
  trials.Add(2, kMidnight);
  trials.Add(4, kMidnight + absl::Minutes(5));
  EXPECT_THAT(TrialsUntil(trials, absl::Minutes(6)), ElementsAre(5));
}

}  // namespace
}  // namespace hone::tracker
