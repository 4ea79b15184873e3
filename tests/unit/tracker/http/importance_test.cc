// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/importance.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hone::tracker {
namespace {

using ::testing::SizeIs;

// Trials that take twice as long with b=2, whatever c is; d differs in every trial.
std::vector<Trial> Trials(const std::string& key, double seconds) {
  std::vector<Trial> trials;
  for (int i = 0; i < 12; ++i) {
    const int b = 1 + i % 2, c = i % 3;
    trials.push_back({key, fmt::format("b={} c={} d={}{}", b, c, key, i), seconds * b * (1 + 0.001 * i)});
  }
  return trials;
}

TEST(ImportanceTest, TheDecisiveDecisionComesFirstAndNoiseExplainsNothing) {
  const std::vector<DecisionImportance> all = ImportanceOf(Trials("k", 1e-3));
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].name, "b");
  EXPECT_GT(all[0].share, 0.99);
  EXPECT_LT(all[1].share, 0.05);
  EXPECT_LT(all[2].share, 0.05);
  ASSERT_THAT(all[0].values, SizeIs(2));
  EXPECT_EQ(all[0].values[0].value, "1");
  EXPECT_EQ(all[0].values[0].trials, 6);
  EXPECT_EQ(all[0].values[0].best_seconds, 1e-3);
  EXPECT_GT(all[0].values[1].best_seconds, 2e-3);
}

TEST(ImportanceTest, SlowerDevicesDoNotCountAsDecisions) {
  std::vector<Trial> trials = Trials("fast", 1e-3);
  for (const Trial& trial : Trials("slow", 1)) trials.push_back(trial);
  const std::vector<DecisionImportance> all = ImportanceOf(trials);
  EXPECT_EQ(all[0].name, "b");
  EXPECT_GT(all[0].share, 0.99);
}

TEST(ImportanceTest, AMissingDecisionIsAValue) {
  const std::vector<DecisionImportance> all =
      ImportanceOf({{"k", "a=1", 1}, {"k", "a=1", 1.01}, {"k", "", 2}, {"k", "nonsense", 2.01}});
  ASSERT_THAT(all, SizeIs(1));
  ASSERT_THAT(all[0].values, SizeIs(2));
  EXPECT_EQ(all[0].values[1].value, "");
  EXPECT_GT(all[0].share, 0.99);
}

// Users who may append records may write any names into them.
TEST(ImportanceTest, NamesThatDifferInEveryTrialHideNoDecision) {
  std::vector<Trial> trials;
  for (int i = 0; i < 64; ++i) {
    const int b = 1 + i % 2;
    Trial& trial = trials.emplace_back(Trial{"k", fmt::format("b={}", b), 1e-3 * b * (1 + 0.001 * (i % 7))});
    for (int n = 0; n < 100'000; ++n) trial.decisions += fmt::format(" {}-{}=1", i, n);
  }
  const std::vector<DecisionImportance> all = ImportanceOf(trials);
  ASSERT_THAT(all, SizeIs(64));
  EXPECT_EQ(all[0].name, "b");
  EXPECT_GT(all[0].share, 0.99);
}

TEST(ImportanceTest, NoTrialsOrOneTrialGiveNoImportance) {
  EXPECT_THAT(ImportanceOf({}), SizeIs(0));
  const std::vector<DecisionImportance> one = ImportanceOf({{"k", "a=1", 1}});
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_EQ(one[0].share, 0);
}

}  // namespace
}  // namespace hone::tracker
