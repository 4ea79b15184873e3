// SPDX-License-Identifier: Apache-2.0
#include "records/prune.h"

#include <algorithm>
#include <set>

#include "base/random.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::records {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Contender Timed(int64_t row, std::string schedule, double seconds) {
  return {.row = row,
          .schedule = std::move(schedule),
          .batch = "b",
          .measured_at = Instant(std::chrono::milliseconds(row)),
          .verified = true,
          .repeats = {seconds}};
}

Instant At(int64_t row) { return Instant(std::chrono::milliseconds(row)); }

TEST(PruneTest, WithoutARuleNothingGoes) { EXPECT_THAT(Prunable(std::vector{Timed(1, "a", 1)}, {}), IsEmpty()); }

TEST(PruneTest, TheWinnerAndTheDefaultItWasComparedWithStay) {
  Contender default_contender = Timed(3, "d", 8);
  default_contender.is_default = true;
  const std::vector<Contender> contenders = {Timed(1, "a", 4), Timed(2, "b", 5), default_contender, Timed(4, "c", 6)};
  EXPECT_THAT(Prunable(contenders, {.keep_best = 0}), ElementsAre(1, 3));
  EXPECT_THAT(Prunable(contenders, {.keep_best = 2}), ElementsAre(3));
  EXPECT_THAT(Prunable(contenders, {.before = At(4)}), ElementsAre(1));
  EXPECT_THAT(Prunable(contenders, {.before = At(4), .keep_best = 2}), IsEmpty());
}

TEST(PruneTest, TheRowToKeepStays) {
  EXPECT_THAT(
      Prunable(std::vector{Timed(1, "a", 1), Timed(2, "b", 2), Timed(3, "c", 3)}, {.keep_best = 0, .keep_row = 3}),
      ElementsAre(1));
}

// A default stays, because schedules of later visits are compared with it.
TEST(PruneTest, ADefaultStaysWhateverItsVisit) {
  Contender default_contender = Timed(1, "d", 8);
  default_contender.is_default = true;
  default_contender.batch = "first";
  const std::vector<Contender> contenders = {default_contender, Timed(2, "a", 4), Timed(3, "b", 5)};
  EXPECT_THAT(Prunable(contenders, {.keep_best = 0}), ElementsAre(2));
}

TEST(PruneTest, FailuresThatRuleOutAScheduleAndConfirmationsStay) {
  Contender crash = Timed(2, "a", 1);
  crash.verified = false;
  crash.rules_out_schedule = true;
  crash.repeats.clear();
  Contender failed = crash;
  failed.row = 3;
  failed.rules_out_schedule = false;
  Contender confirmed = Timed(4, "b", 5);
  confirmed.confirmed = true;
  const std::vector<Contender> contenders = {Timed(1, "a", 1), crash, failed, confirmed, Timed(5, "c", 2)};
  EXPECT_THAT(Prunable(contenders, {.keep_best = 0}), ElementsAre(0, 2, 4));
}

TEST(PruneTest, PruningNeverChangesTheWinner) {
  Random random(3);
  int64_t gone = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<Contender> contenders;
    for (int64_t row = 1, rows = 1 + random.Below(25); row <= rows; ++row) {
      Contender c = Timed(row, fmt::format("s{}", random.Below(5)), 1 + 0.01 * static_cast<double>(random.Below(20)));
      c.batch = fmt::format("b{}", random.Below(3));
      c.is_default = c.schedule == "s0";
      c.confirmed = random.Below(8) == 0;
      if (random.Below(6) == 0) {
        c.verified = c.confirmed = false;
        c.rules_out_schedule = random.Below(2) == 0;
        c.repeats.clear();
      }
      contenders.push_back(std::move(c));
    }
    PruneRule rule;
    if (random.Below(2) == 0) rule.before = At(random.Below(25));
    if (!rule.before.has_value() || random.Below(2) == 0) rule.keep_best = static_cast<size_t>(random.Below(4));
    const std::vector<size_t> prunable = Prunable(contenders, rule);
    gone += static_cast<int64_t>(prunable.size());
    std::vector<Contender> staying;
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (!std::binary_search(prunable.begin(), prunable.end(), i)) staying.push_back(contenders[i]);
    }
    const auto before = FindWinner(contenders), after = FindWinner(staying);
    ASSERT_EQ(before.has_value(), after.has_value()) << round;
    if (before.has_value()) {
      ASSERT_EQ(contenders[before->index].row, staying[after->index].row) << round;
      ASSERT_EQ(before->confirmed, after->confirmed) << round;
    }
  }
  EXPECT_GT(gone, 10000);
}

}  // namespace
}  // namespace hone::records
