// SPDX-License-Identifier: Apache-2.0
#include "records/winner.h"

#include <algorithm>

#include "base/random.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace hone::records {
namespace {

// A verified timing of one repeat, measured `row` milliseconds after 1970 in batch "b".
Contender Raced(int64_t row, std::string schedule, double seconds) {
  return {.row = row,
          .schedule = std::move(schedule),
          .batch = "b",
          .measured_at = Instant(std::chrono::milliseconds(row)),
          .verified = true,
          .repeats = {seconds}};
}

Contender InBatch(Contender contender, std::string batch) {
  contender.batch = std::move(batch);
  return contender;
}

Contender OfDefault(Contender contender) {
  contender.is_default = true;
  return contender;
}

Contender Confirmed(Contender contender) {
  contender.confirmed = true;
  return contender;
}

Contender Interleaved(Contender contender, std::vector<double> repeats) {
  contender.interleaved = contender.confirmed = true;
  contender.repeats = std::move(repeats);
  return contender;
}

Contender Wrong(int64_t row, std::string schedule) {
  Contender contender = Raced(row, std::move(schedule), 1);
  contender.verified = false;
  contender.rules_out_schedule = true;
  contender.repeats.clear();
  return contender;
}

std::string NameOfWinner(const std::vector<Contender>& contenders) {
  const std::optional<Winner> winner = FindWinner(contenders);
  return winner.has_value() ? contenders[winner->index].schedule : "(none)";
}

TEST(WinnerTest, WithoutAVerifiedTimingThereIsNoWinner) {
  Contender unverified = Raced(1, "fast", 1);
  unverified.verified = false;
  EXPECT_EQ(FindWinner({}), std::nullopt);
  EXPECT_EQ(NameOfWinner({unverified, Wrong(2, "wrong")}), "(none)");
  EXPECT_EQ(NameOfWinner({unverified, Raced(3, "slow", 9)}), "slow");
}

TEST(WinnerTest, TheLowestMedianOfARaceWinsAndOnATieTheEarlierRow) {
  Contender lucky = Raced(1, "lucky once", 0);
  lucky.repeats = {0.1, 5, 5};
  EXPECT_EQ(NameOfWinner({lucky, Raced(2, "steady", 2), Raced(3, "as steady", 2)}), "steady");
  const Winner winner = *FindWinner(std::vector{lucky, Raced(2, "steady", 2)});
  EXPECT_EQ(winner.seconds, 2);
  EXPECT_EQ(winner.default_seconds, std::nullopt);
  EXPECT_FALSE(winner.confirmed);
}

TEST(WinnerTest, AScheduleIsJudgedByItsNewestMeasurementNotItsLuckiest) {
  EXPECT_EQ(NameOfWinner({Raced(1, "a", 1), Raced(2, "b", 2), Raced(3, "a", 3)}), "b");
  // An imported row has a larger row number, but was measured earlier.
  Contender imported = Raced(4, "a", 9);
  imported.measured_at = Instant(std::chrono::milliseconds(0));
  EXPECT_EQ(NameOfWinner({Raced(1, "a", 1), Raced(2, "b", 2), imported}), "a");
}

TEST(WinnerTest, ARaceIsNotWonAgainstAFasterDefaultOfTheSameBatch) {
  EXPECT_EQ(NameOfWinner({OfDefault(Raced(1, "default", 2)), Raced(2, "a", 1)}), "a");
  EXPECT_EQ(NameOfWinner({OfDefault(Raced(1, "default", 2)), Raced(2, "a", 1.999)}), "default");
  // The device was fast on the first day. "a" lost its race then, so its time must not count against "b" on the slow
  // day.
  const std::vector<Contender> days = {
      OfDefault(InBatch(Raced(1, "default", 1), "fast day")), InBatch(Raced(2, "a", 1.1), "fast day"),
      OfDefault(InBatch(Raced(3, "default", 2), "slow day")), InBatch(Raced(4, "b", 1.5), "slow day")};
  const Winner winner = *FindWinner(days);
  EXPECT_EQ(days[winner.index].schedule, "b");
  EXPECT_EQ(winner.default_seconds, 2);
}

// The device may have been slower when the default was timed, so a small gain proves nothing.
TEST(WinnerTest, ARaceAgainstADefaultOfAnotherVisitMustBeWonClearly) {
  const Contender default_contender = OfDefault(InBatch(Raced(1, "default", 2), "first"));
  const auto later = [](double seconds) { return InBatch(Raced(2, "a", seconds), "later"); };
  EXPECT_EQ(NameOfWinner({default_contender, later(1.85)}), "default");
  EXPECT_EQ(NameOfWinner({default_contender, later(1.75)}), "a");
  EXPECT_EQ(NameOfWinner({default_contender, InBatch(Raced(2, "a", 1.85), "first")}), "a") << "in the same visit";
  EXPECT_EQ(Explain(std::vector{default_contender, later(1.85)}),
            (std::vector<Verdict>{Verdict::kWinner, Verdict::kNotBetterThanDefault}));
  EXPECT_EQ(NameOfWinner({default_contender, OfDefault(InBatch(Raced(3, "default", 1.9), "second")), later(1.75)}),
            "default")
      << "the newest default counts";
  EXPECT_EQ(NameOfWinner({InBatch(Raced(2, "a", 2.5), "later"), InBatch(Raced(3, "b", 2.4), "last")}), "b")
      << "without a default there is nothing to beat";
}

TEST(WinnerTest, ADeviceThatHasBecomeFasterMakesNoScheduleBetter) {
  const auto with_reference = [](Contender contender, double seconds) {
    contender.reference_seconds = seconds;
    return contender;
  };
  const Contender default_contender = with_reference(OfDefault(InBatch(Raced(1, "default", 2), "first")), 3);
  const Contender a = InBatch(Raced(2, "a", 1.5), "later");
  EXPECT_EQ(NameOfWinner({default_contender, with_reference(a, 3)}), "a");
  EXPECT_EQ(NameOfWinner({default_contender, with_reference(a, 2)}), "default") << "half as fast again as it was";
  EXPECT_EQ(NameOfWinner({default_contender, a}), "a") << "not known";
  // The reference kernel takes longer than before, so the device has become slower. The schedule's time is not lowered
  // for that.
  EXPECT_EQ(NameOfWinner({default_contender, with_reference(InBatch(Raced(2, "a", 1.9), "later"), 6)}), "default");
}

TEST(WinnerTest, TheDefaultWinsIfItBeatsAllOthers) {
  // The newest row with the schedule "x" is not marked as default, and lost to "y" in its batch.
  EXPECT_EQ(NameOfWinner({OfDefault(Raced(1, "x", 1)), Raced(2, "a", 2), InBatch(Raced(3, "x", 3), "c"),
                          OfDefault(InBatch(Raced(4, "y", 2), "c")), InBatch(Raced(5, "y", 3), "b")}),
            "y");
}

TEST(WinnerTest, AConfirmedOneBeatsAFasterRace) {
  EXPECT_EQ(NameOfWinner({Raced(1, "raced", 1), Confirmed(InBatch(Raced(2, "confirmed", 2), "final")),
                          Raced(3, "raced later", 1)}),
            "confirmed");
}

TEST(WinnerTest, OnlyTheNewestConfirmationCounts) {
  const std::vector<Contender> contenders = {
      Confirmed(InBatch(Raced(1, "of yesterday", 1), "yesterday")), Confirmed(InBatch(Raced(2, "a", 3), "today")),
      Confirmed(InBatch(Raced(3, "b", 2), "today")), OfDefault(Confirmed(InBatch(Raced(4, "default", 4), "today")))};
  const Winner winner = *FindWinner(contenders);
  EXPECT_EQ(contenders[winner.index].schedule, "b");
  EXPECT_EQ(winner.seconds, 2);
  EXPECT_EQ(winner.default_seconds, 4);
  EXPECT_TRUE(winner.confirmed);
}

TEST(WinnerTest, AConfirmationMayBeWonByTheDefault) {
  const std::vector<Contender> contenders = {Confirmed(Raced(1, "a", 1.2)),
                                             OfDefault(Confirmed(Raced(2, "default", 1)))};
  const Winner winner = *FindWinner(contenders);
  EXPECT_EQ(contenders[winner.index].schedule, "default");
  EXPECT_EQ(winner.default_seconds, 1);
}

TEST(WinnerTest, AConfirmationOfTheDefaultAloneComparesNothing) {
  const Contender alone = OfDefault(Confirmed(InBatch(Raced(9, "default", 1), "alone")));
  const std::vector<Contender> contenders = {Confirmed(Raced(1, "a", 2)), OfDefault(Confirmed(Raced(2, "default", 4))),
                                             alone};
  const Winner winner = *FindWinner(contenders);
  EXPECT_EQ(contenders[winner.index].schedule, "a");
  EXPECT_EQ(winner.default_seconds, 4);
  const std::vector<Contender> raced = {Raced(1, "a", 0.5), alone};
  EXPECT_EQ(raced[FindWinner(raced)->index].schedule, "a");
  EXPECT_FALSE(FindWinner(raced)->confirmed);
}

// The batch ended before the default was measured, or the file is older than the column is_default.
TEST(WinnerTest, AConfirmationWithoutTheDefaultCountsWhereNoneHasIt) {
  const std::vector<Contender> cut_short = {Confirmed(InBatch(Raced(7, "b", 3), "cut short")),
                                            Confirmed(InBatch(Raced(8, "c", 2), "cut short")), Raced(9, "raced", 1)};
  Winner winner = *FindWinner(cut_short);
  EXPECT_EQ(cut_short[winner.index].schedule, "c");
  EXPECT_TRUE(winner.confirmed);
  EXPECT_EQ(winner.default_seconds, std::nullopt);
  std::vector<Contender> with_complete = cut_short;
  with_complete.push_back(Confirmed(Raced(1, "a", 3)));
  with_complete.push_back(OfDefault(Confirmed(Raced(2, "default", 4))));
  EXPECT_EQ(NameOfWinner(with_complete), "a");
}

TEST(WinnerTest, InterleavedTimingsAreComparedRoundByRound) {
  // The machine became slow in the middle. "a" has the lower median, but the default wins most rounds.
  const std::vector<Contender> contenders = {Interleaved(Raced(1, "a", 0), {1.1, 1.1, 2.0, 2.2, 2.2}),
                                             OfDefault(Interleaved(Raced(2, "default", 0), {1.0, 1.0, 2.1, 2.1, 2.1}))};
  EXPECT_EQ(NameOfWinner(contenders), "default");
  // The same times, but not interleaved: repeats with the same index are no pairs.
  std::vector<Contender> apart = contenders;
  for (Contender& c : apart) c.interleaved = false;
  EXPECT_EQ(NameOfWinner(apart), "a");
  EXPECT_EQ(NameOfWinner({Interleaved(Raced(1, "a", 0), {1.0, 1.9, 0.9}),
                          OfDefault(Interleaved(Raced(2, "default", 0), {1.1, 2.0, 1.0}))}),
            "a");
}

TEST(WinnerTest, ThreeOfFourPairsMustAgree) {
  const auto winner = [](std::vector<double> repeats) {
    const Contender default_contender =
        OfDefault(Interleaved(Raced(2, "default", 0), std::vector<double>(repeats.size(), 1.0)));
    return NameOfWinner({Interleaved(Raced(1, "a", 0), std::move(repeats)), default_contender});
  };
  EXPECT_EQ(winner({0.9, 1.1, 0.9, 1.1, 0.9}), "default") << "three of five: by the medians alone it would win";
  EXPECT_EQ(winner({0.9, 1.1, 0.9, 0.9, 0.9}), "a");
  EXPECT_EQ(winner({0.9, 1.1, 0.9}), "default");
  EXPECT_EQ(winner({0.9, 0.9, 0.9}), "a");
  EXPECT_EQ(winner({0.9, 9.0, 0.9, 0.9}), "a") << "one that was disturbed is not in the way";
}

TEST(WinnerTest, AScheduleThatProvedWrongIsOutUntilMeasuredAgain) {
  const std::vector<Contender> contenders = {Confirmed(Raced(1, "a", 1)), Confirmed(Raced(2, "b", 2)), Wrong(3, "a")};
  EXPECT_EQ(NameOfWinner(contenders), "b");
  std::vector<Contender> again = contenders;
  again.push_back(Confirmed(Raced(4, "a", 1)));
  EXPECT_EQ(NameOfWinner(again), "a");
  EXPECT_EQ(NameOfWinner({Raced(3, "a", 1), Wrong(3, "a")}), "(none)") << "at the same instant";
}

TEST(DecidingRepeatsTest, AreTheInterleavedOnesIfThereAreAny) {
  const std::vector<double> seconds = {9, 9, 1, 3, 2};
  const auto counting = [&](int64_t first) {
    const auto repeats = DecidingRepeats(seconds, first);
    return std::vector<double>(repeats.begin(), repeats.end());
  };
  EXPECT_EQ(counting(2), (std::vector<double>{1, 3, 2}));
  EXPECT_EQ(counting(3), seconds) << "two alone may be luck";
  EXPECT_EQ(counting(5), seconds);
  EXPECT_EQ(counting(0), seconds);
}

TEST(ContenderOfTest, AFinalComparisonOfTooFewRoundsIsNotConfirmed) {
  const auto contender = [](int64_t first_interleaved) {
    StoredRecord stored;
    stored.record.outcome = Timing{.seconds = {9, 1, 3, 2},
                                   .first_interleaved = first_interleaved,
                                   .confirmed = true,
                                   .verified = true,
                                   .reference_seconds = 0.5};
    return ContenderOf(stored);
  };
  EXPECT_TRUE(contender(1).confirmed && contender(1).interleaved);
  EXPECT_EQ(contender(1).repeats, (std::vector<double>{1, 3, 2}));
  EXPECT_EQ(contender(1).reference_seconds, 0.5);
  EXPECT_TRUE(contender(0).confirmed) << "how many were taken in turns is not known: it is taken to be all";
  for (const int64_t first : {2, 3, 4}) {
    EXPECT_FALSE(contender(first).confirmed || contender(first).interleaved) << first;
    EXPECT_EQ(contender(first).repeats, (std::vector<double>{9, 1, 3, 2})) << first;
  }
}

std::vector<Contender> RandomContenders(Random& random) {
  std::vector<Contender> contenders;
  for (int64_t row = 1, rows = 1 + random.Below(30); row <= rows; ++row) {
    const std::string schedule = fmt::format("s{}", random.Below(5));
    Contender c = random.Below(6) == 0 ? Wrong(row, schedule) : Raced(row, schedule, 1 + 0.01 * random.Below(20));
    c.batch = fmt::format("b{}", row / 5);
    c.measured_at = Instant(std::chrono::milliseconds(random.Below(10)));
    if (c.verified) {
      c.verified = random.Below(5) > 0;
      c.confirmed = random.Below(3) == 0;
      c.interleaved = random.Below(2) == 0;
      c.is_default = random.Below(4) == 0;
      for (int64_t i = random.Below(4); i > 0; --i) c.repeats.push_back(1 + random.Uniform());
    }
    contenders.push_back(std::move(c));
  }
  return contenders;
}

TEST(WinnerTest, NeitherTheOrderNorRowsWithoutABearingChangeIt) {
  Random random(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Contender> contenders = RandomContenders(random);
    const std::optional<Winner> winner = FindWinner(contenders);
    const bool any = std::any_of(contenders.begin(), contenders.end(), [](const Contender& c) { return c.verified; });
    if (winner.has_value()) {
      ASSERT_TRUE(any);
      ASSERT_TRUE(contenders[winner->index].verified);
    }
    const int64_t row = winner.has_value() ? contenders[winner->index].row : 0;
    for (size_t i = contenders.size(); i > 1; --i)
      std::swap(contenders[i - 1], contenders[random.Below(static_cast<int64_t>(i))]);
    const std::optional<Winner> shuffled = FindWinner(contenders);
    ASSERT_EQ(shuffled.has_value() ? contenders[shuffled->index].row : 0, row) << "round " << round;
    std::erase_if(contenders, [](const Contender& c) { return !c.confirmed && !c.rules_out_schedule; });
    const std::optional<Winner> deciding = FindWinner(contenders);
    if (deciding.has_value() && deciding->confirmed) {
      ASSERT_EQ(contenders[deciding->index].row, row) << "round " << round;
    } else if (winner.has_value()) {
      ASSERT_FALSE(winner->confirmed) << "round " << round;
    }
  }
}

Contender AtSizes(std::string sizes, Contender contender) {
  contender.sizes = std::move(sizes);
  return contender;
}

// Times at other sizes are not comparable, so the newest timing says which count.
TEST(WinnerTest, WithoutAConfirmationOnlyTimesAtTheNewestSizesCount) {
  std::vector<Contender> contenders = {AtSizes("n=1", Raced(1, "a", 0.1)), AtSizes("n=9", Raced(2, "b", 3)),
                                       AtSizes("n=9", Raced(3, "c", 2)), AtSizes("n=9", Raced(4, "d", 4))};
  EXPECT_EQ(NameOfWinner(contenders), "c");
  EXPECT_EQ(Explain(contenders)[0], Verdict::kNotCompared);
  contenders.push_back(AtSizes("n=1", Raced(5, "e", 0.5)));
  EXPECT_EQ(NameOfWinner(contenders), "a");
  // The timings of a confirmation are from one visit. A wrong output counts at any sizes.
  contenders.push_back(AtSizes("n=9", Confirmed(InBatch(Raced(6, "b", 3), "final"))));
  EXPECT_EQ(NameOfWinner(contenders), "b");
  contenders.push_back(AtSizes("n=1", Wrong(7, "b")));
  EXPECT_EQ(NameOfWinner(contenders), "a");
}

TEST(ExplainTest, EveryContenderGetsTheReasonThatKeptItFromWinning) {
  Contender unverified = Raced(1, "u", 1);
  unverified.verified = false;
  const std::vector<Contender> contenders = {
      unverified,
      Raced(2, "wrong later", 1),
      Wrong(3, "wrong later"),
      Raced(4, "raced only", 1),
      Confirmed(InBatch(OfDefault(Raced(5, "d", 10)), "old")),
      Confirmed(InBatch(Raced(6, "of an old day", 1), "old")),
      Confirmed(InBatch(OfDefault(Raced(10, "d", 10)), "new")),
      Confirmed(InBatch(Raced(11, "a", 3), "new")),
      Confirmed(InBatch(Raced(12, "a", 5), "new")),
      Confirmed(InBatch(Raced(13, "b", 6), "new")),
      Confirmed(InBatch(Raced(14, "c", 9.99), "new")),
  };
  using enum Verdict;
  EXPECT_EQ(Explain(contenders),
            (std::vector<Verdict>{kUnverified, kCondemned, kFailed, kNotCompared, kNotCompared, kNotCompared, kSlower,
                                  kMeasuredAgain, kWinner, kSlower, kNotBetterThanDefault}));
  EXPECT_EQ(FindWinner(contenders)->index, 8u);
}

TEST(ExplainTest, WithoutAWinnerNoContenderHasThatVerdict) {
  EXPECT_EQ(Explain({}), std::vector<Verdict>());
  EXPECT_EQ(Explain(std::vector{Raced(1, "a", 1), Wrong(2, "a")}),
            (std::vector<Verdict>{Verdict::kCondemned, Verdict::kFailed}));
}

TEST(ExplainTest, TheOneWinnerIsTheOneThatIsFound) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<Contender> contenders = RandomContenders(random);
    const std::vector<Verdict> verdicts = Explain(contenders);
    const std::optional<Winner> winner = FindWinner(contenders);
    EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), Verdict::kWinner), winner.has_value() ? 1 : 0);
    if (winner.has_value()) {
      EXPECT_EQ(verdicts[winner->index], Verdict::kWinner);
    }
  }
}

}  // namespace
}  // namespace hone::records
