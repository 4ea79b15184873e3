// SPDX-License-Identifier: Apache-2.0
#include "tuner/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "compiler/schedule/step.h"
#include "tuner/cost_model.h"

namespace hone::tuner {
namespace {

// A landscape with one valley: five decisions of eight options, 32,768 points. A point's cost grows with its distance
// to the goal. A split with the decisions' number identifies a candidate; no schedule is lowered.
constexpr int kDecisions = 5;
constexpr int64_t kGoal[kDecisions] = {5, 2, 7, 0, 4};

ir::Workload AnyWorkload() {
  return ir::ParseWorkload(
             "workload \"relu\"\ninput x: f32[1048576] in [-1, 1]\n"
             "t: f32[1048576] over i:1048576 = max(x[i], 0f32)\noutput t\n")
      .value();
}

absl::StatusOr<space::Candidate> Landscape(space::Chooser& chooser) {
  int64_t number = 0, invalid = 0;
  for (int d = 0; d < kDecisions; ++d) {
    const int64_t value = chooser.OneOf("d" + std::to_string(d), {0, 1, 2, 3, 4, 5, 6, 7}, 1);
    number = number * 8 + value;
    invalid += value == 6 ? 1 : 0;
  }
  if (invalid >= 2) return absl::FailedPreconditionError("two sixes lead nowhere");
  const schedule::Schedule steps = {schedule::Split{"i", number + 2, schedule::Tail::kMask}};
  auto state = schedule::Replay(AnyWorkload(), steps);
  if (!state.ok()) return state.status();
  return space::Candidate{chooser.decisions(), steps, *std::move(state)};
}

// Eight candidates in a row, with at most two neighbours each.
absl::StatusOr<space::Candidate> Row(space::Chooser& chooser) {
  const int64_t place = chooser.OneOf("place", {0, 1, 2, 3, 4, 5, 6, 7}, 1);
  const schedule::Schedule steps = {schedule::Split{"i", place + 2, schedule::Tail::kMask}};
  auto state = schedule::Replay(AnyWorkload(), steps);
  if (!state.ok()) return state.status();
  return space::Candidate{chooser.decisions(), steps, *std::move(state)};
}

double SecondsOf(const Proposal& proposal) {
  double seconds = 1e-3;
  for (int d = 0; d < kDecisions; ++d) {
    seconds *= 1 + 0.15 * std::abs(static_cast<double>(proposal.decisions[static_cast<size_t>(d)].value - kGoal[d]));
  }
  return seconds;
}

class SearchTest : public ::testing::Test {
 protected:
  static Search MakeSearch(uint64_t seed, int threads = 1, std::string_view without = "") {
    Search::Options options;
    if (!without.empty()) options.parts = PartsWithout(without).value();
    options.seed = seed;
    options.first_samples = 64;
    options.threads = threads;
    return Search(Landscape, target::ParseTarget("x86_64").value(), options);
  }
  // Returns the origins of all proposals of several rounds of 16, after the first candidate, which is the default.
  static std::set<Origin> OriginsIn(int rounds, Search& search, const CostModel& model) {
    std::set<Origin> origins;
    for (int round = 0; round < rounds; ++round) {
      const auto proposals = search.Propose(16, model);
      for (size_t i = 0; i < proposals.size(); ++i) {
        if (round > 0 || i > 0) origins.insert(proposals[i].origin);
        search.Observe(proposals[i].schedule, SecondsOf(proposals[i]));
      }
    }
    return origins;
  }

  // A search with an untuned default and a relative, so that every origin can occur.
  static Search SearchWithout(std::string_view without) {
    Search search = MakeSearch(11, 1, without);
    space::Chooser chooser;
    const space::Candidate default_candidate = Landscape(chooser).value();
    search.SetDefault({default_candidate.decisions, schedule::Print(default_candidate.schedule),
                       ExtractFeatures(default_candidate.state, target::ParseTarget("x86_64").value()),
                       Origin::kDefault});
    search.AddRelative({{"d0", 4, {}}, {"d1", 2, {}}, {"d2", 5, {}}, {"d3", 1, {}}, {"d4", 4, {}}});
    return search;
  }

  AnalyticModel draft_;
  UniformModel uniform_;
};

TEST_F(SearchTest, PartsThatAreLeftOutProposeNothing) {
  Search whole = SearchWithout("model");
  EXPECT_EQ(OriginsIn(8, whole, draft_),
            (std::set{Origin::kRelative, Origin::kFirstBatch, Origin::kEvolved, Origin::kDescent, Origin::kRandom}));
  const std::pair<std::string_view, Origin> parts[] = {
      {"relatives", Origin::kRelative}, {"evolution", Origin::kEvolved}, {"descent", Origin::kDescent}};
  for (const auto& [part, origin] : parts) {
    Search search = SearchWithout(part);
    EXPECT_FALSE(OriginsIn(8, search, draft_).contains(origin)) << part;
  }
}

TEST_F(SearchTest, WithoutAnyPartTheSearchIsRandomAndSlower) {
  Search chance = SearchWithout("all");
  EXPECT_EQ(OriginsIn(30, chance, uniform_), (std::set{Origin::kFirstBatch, Origin::kRandom}));
  EXPECT_FALSE(chance.converged()) << "chance knows no end but that of the space";
  Search guided = SearchWithout("model");
  OriginsIn(30, guided, draft_);
  EXPECT_LT(*guided.best_seconds(), *chance.best_seconds());
}

TEST_F(SearchTest, FirstCandidatesOfChanceAreNotNearTheDefault) {
  Search near = MakeSearch(12), far = MakeSearch(12, 1, "preferred");
  const auto as_preferred = [this](Search& search) {
    int64_t count = 0;
    for (const Proposal& p : search.Propose(32, uniform_)) {
      for (const space::Decision& d : p.decisions) count += d.value == 1 ? 1 : 0;
    }
    return count;
  };
  EXPECT_GT(2 * as_preferred(near), 3 * as_preferred(far));
}

TEST(SearchParts, AreNamed) {
  EXPECT_FALSE(PartsWithout("model,descent")->model);
  EXPECT_FALSE(PartsWithout("model,descent")->descent);
  EXPECT_TRUE(PartsWithout("model,descent")->evolution);
  for (const std::string_view wrong : {"", "luck", "model,", "model descent"}) {
    const auto parts = PartsWithout(wrong);
    EXPECT_EQ(parts.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_NE(parts.status().message().find("relatives"), std::string::npos) << parts.status();
  }
}

TEST_F(SearchTest, FindsTheValleyInAFractionOfTheSpace) {
  Search search = MakeSearch(1);
  int trials = 0;
  while (trials < 800) {
    const auto proposals = search.Propose(16, draft_);
    if (proposals.empty() && search.converged()) break;
    for (const Proposal& p : proposals) search.Observe(p.schedule, SecondsOf(p));
    trials += static_cast<int>(proposals.size());
  }
  EXPECT_NEAR(*search.best_seconds(), 1e-3, 1e-9) << "after " << trials << " trials";
  EXPECT_LT(trials, 800) << "it should notice that nothing is left to gain";
  EXPECT_TRUE(search.converged());
  EXPECT_GT(search.drawn().illegal, 0);
  EXPECT_GT(search.drawn().repeated, 0);
  EXPECT_GE(search.drawn().all, search.drawn().illegal + search.drawn().repeated + trials);
}

TEST_F(SearchTest, FirstProposalIsTheDefault) {
  Search search = MakeSearch(2);
  const auto proposals = search.Propose(8, draft_);
  ASSERT_EQ(proposals.size(), 8u);
  EXPECT_EQ(proposals[0].origin, Origin::kDefault);
  for (const space::Decision& d : proposals[0].decisions) EXPECT_EQ(d.value, 1);
}

TEST_F(SearchTest, NothingIsProposedTwice) {
  Search search = MakeSearch(3);
  std::set<std::string> seen;
  for (int round = 0; round < 12; ++round) {
    for (const Proposal& p : search.Propose(24, draft_)) {
      EXPECT_TRUE(seen.insert(p.schedule).second) << p.schedule;
      // Every third candidate fails, which must not stop the search.
      search.Observe(p.schedule, seen.size() % 3 == 0 ? std::nullopt : std::optional(SecondsOf(p)));
    }
  }
  EXPECT_GT(seen.size(), 200u);
}

TEST_F(SearchTest, SameSeedSameProposalsOnAnyNumberOfThreads) {
  Search one = MakeSearch(4, 1), many = MakeSearch(4, 4);
  for (int round = 0; round < 4; ++round) {
    const auto a = one.Propose(16, draft_), b = many.Propose(16, draft_);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].schedule, b[i].schedule);
      one.Observe(a[i].schedule, SecondsOf(a[i]));
      many.Observe(b[i].schedule, SecondsOf(b[i]));
    }
  }
}

TEST_F(SearchTest, DecisionsOfARelativeComeRightAfterTheDefault) {
  Search search = MakeSearch(5);
  // 9 is not an option here, so the nearest option is used.
  search.AddRelative({{"d0", 5, {}}, {"d1", 2, {}}, {"d2", 9, {}}, {"d3", 0, {}}, {"d4", 4, {}}, {"other", 3, {}}});
  const auto proposals = search.Propose(8, draft_);
  EXPECT_EQ(proposals[1].origin, Origin::kRelative);
  EXPECT_NEAR(SecondsOf(proposals[1]), 1e-3, 1e-9);
}

// A small budget has only one or two places in a batch. The best known schedule must still be tried.
TEST_F(SearchTest, RelativesThatFindNoPlaceInTheFirstBatchComeInTheNext) {
  Search search = MakeSearch(15);
  const auto relative = [](int64_t d0) { return space::Decisions{{"d0", d0, {}}, {"d1", 5, {}}}; };
  for (int64_t d0 = 0; d0 < 6; ++d0) search.AddRelative(relative(d0));
  search.AddNearest(relative(7));
  const auto first = search.Propose(3, draft_);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0].origin, Origin::kDefault);
  EXPECT_EQ(first[1].origin, Origin::kRelative);
  EXPECT_EQ(first[1].decisions[0].value, 7) << "the nearest";
  EXPECT_EQ(first[2].origin, Origin::kFirstBatch);
  std::vector<int64_t> later;
  for (int round = 0; round < 2; ++round) {
    for (const Proposal& p : search.Propose(3, draft_)) {
      EXPECT_EQ(p.origin, Origin::kRelative);
      later.push_back(p.decisions[0].value);
      search.Observe(p.schedule, SecondsOf(p));
    }
  }
  EXPECT_EQ(later, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(SearchTest, WithdrawnCandidatesComeBeforeWaitingOnes) {
  Search search = MakeSearch(15);
  for (int64_t d0 = 0; d0 < 6; ++d0) search.AddRelative(space::Decisions{{"d0", d0, {}}, {"d1", 5, {}}});
  std::vector<std::string> lost, again;
  for (const Proposal& p : search.Propose(3, draft_)) lost.push_back(p.schedule);
  for (const std::string& schedule : lost) search.Withdraw(schedule);
  for (const Proposal& p : search.Propose(3, draft_)) again.push_back(p.schedule);
  EXPECT_EQ(again, lost);
}

TEST_F(SearchTest, DrawsOfARoundHaveNothingToDoWithOneAnother) {
  std::vector<std::pair<int64_t, int64_t>> drawn;
  const auto noting = [&](space::Chooser& chooser) -> absl::StatusOr<space::Candidate> {
    std::vector<int64_t> options(1000);
    std::iota(options.begin(), options.end(), 0);
    const int64_t a = chooser.OneOf("a", options, 0), b = chooser.OneOf("b", options, 0);
    drawn.emplace_back(a, b);
    return absl::FailedPreconditionError("nobody wants it");
  };
  Search::Options options;
  options.first_samples = 200;
  options.parts = PartsWithout("all").value();
  Search search(noting, target::ParseTarget("x86_64").value(), options);
  search.Propose(8, draft_);
  ASSERT_GE(drawn.size(), 200u);
  int same = 0;
  for (size_t i = 0; i + 1 < drawn.size(); ++i) same += drawn[i].second == drawn[i + 1].first ? 1 : 0;
  EXPECT_LT(same, 10) << "the second decision of a draw is the first one of the next";
}

TEST_F(SearchTest, RememberedCandidatesAreNotTriedAgain) {
  Search first = MakeSearch(6);
  const auto proposals = first.Propose(32, draft_);
  Search second = MakeSearch(7);
  for (const Proposal& p : proposals) second.Remember(p.decisions, p.schedule, SecondsOf(p));
  second.Remember({{"d0", 1, {}}}, "split i 3 mask\n", 1e-9);  // these decisions lead to another schedule
  EXPECT_GT(*second.best_seconds(), 1e-4);
  for (const Proposal& p : second.Propose(32, draft_)) {
    for (const Proposal& old : proposals) EXPECT_NE(p.schedule, old.schedule);
  }
}

TEST_F(SearchTest, WithdrawnCandidatesComeFirstInTheNextBatch) {
  Search search = MakeSearch(13);
  const auto lost = search.Propose(8, draft_);
  ASSERT_EQ(lost.size(), 8u);
  search.Observe(lost[1].schedule, SecondsOf(lost[1]));
  for (const Proposal& p : lost) search.Withdraw(p.schedule);
  const auto again = search.Propose(12, draft_);
  ASSERT_EQ(again.size(), 12u);
  EXPECT_EQ(again[0].schedule, lost[0].schedule);
  for (size_t i = 2; i < lost.size(); ++i) EXPECT_EQ(again[i - 1].schedule, lost[i].schedule);
  std::set<std::string> seen;
  for (const Proposal& p : again) {
    EXPECT_TRUE(seen.insert(p.schedule).second);
    search.Withdraw(p.schedule);
  }
  const auto third = search.Propose(24, draft_);
  for (size_t i = 0; i < third.size(); ++i) {
    const bool new_in_second = i < 5;  // seven of the twelve were proposed again
    EXPECT_EQ(seen.contains(third[i].schedule), new_in_second) << i;
  }
}

TEST_F(SearchTest, AnExcludedScheduleIsForgotten) {
  Search search = MakeSearch(14);
  const auto proposals = search.Propose(8, draft_);
  for (size_t i = 0; i < proposals.size(); ++i) {
    search.Observe(proposals[i].schedule, 1e-3 * static_cast<double>(i + 1));
  }
  search.Observe(proposals[0].schedule, std::nullopt);  // for example, its device was lost
  EXPECT_EQ(search.Best(1)[0].schedule, proposals[0].schedule);
  search.Exclude(proposals[0].schedule);
  EXPECT_EQ(search.best_seconds(), 2e-3);
  ASSERT_EQ(search.Best(8).size(), 7u);
  EXPECT_EQ(search.Best(1)[0].schedule, proposals[1].schedule);
  search.Observe(proposals[0].schedule, 1e-3);  // it succeeds later
  EXPECT_EQ(search.Best(1)[0].schedule, proposals[0].schedule);
}

TEST_F(SearchTest, TheNewestTimeCountsUnlessAnEstimateHasMoreTimings) {
  Search search = MakeSearch(16);
  const auto proposals = search.Propose(2, draft_);
  search.Observe(proposals[0].schedule, 1e-3);
  search.Observe(proposals[1].schedule, 1.2e-3);
  search.Observe(proposals[0].schedule, 1.5e-3);
  EXPECT_EQ(search.best_seconds(), 1.2e-3);
  EXPECT_EQ(search.Best(1)[0].schedule, proposals[1].schedule);
  search.SetEstimate(proposals[1].schedule, {1.6e-3, 5});
  search.SetEstimate(proposals[1].schedule, {1.1e-3, 4});
  search.Observe(proposals[1].schedule, 1.1e-3);
  EXPECT_EQ(search.best_seconds(), 1.5e-3);
  search.Exclude(proposals[0].schedule);
  search.SetEstimate(proposals[0].schedule, {1e-3, kConfirmedTimings});
  EXPECT_EQ(search.best_seconds(), 1.6e-3) << "what is condemned has no time that could be better known";
}

TEST_F(SearchTest, OnlyTheFastestKeepTheirDecisions) {
  Search search = MakeSearch(17);
  for (int round = 0; round < 20; ++round) {
    for (const Proposal& p : search.Propose(16, draft_)) search.Observe(p.schedule, SecondsOf(p));
  }
  const auto open = search.Propose(16, draft_);
  ASSERT_FALSE(open.empty());
  search.DropSlowDecisions();
  const std::vector<Proposal> best = search.Best(1000);
  ASSERT_GT(best.size(), 96u);
  for (size_t i = 0; i < best.size(); ++i) EXPECT_EQ(best[i].decisions.empty(), i >= 96) << i;
  for (const Proposal& p : open) search.Withdraw(p.schedule);
  for (const Proposal& p : search.Propose(16, draft_)) EXPECT_EQ(p.decisions.size(), static_cast<size_t>(kDecisions));
}

TEST_F(SearchTest, ADescentWaitsForWhatItProposed) {
  Search::Options options;
  options.first_samples = options.samples = 0;
  Search search(Row, target::ParseTarget("x86_64").value(), options);
  std::set<int64_t> tried;
  std::vector<Proposal> open = search.Propose(8, draft_);
  while (!open.empty()) {
    for (int round = 0; round < 5; ++round) EXPECT_TRUE(search.Propose(8, draft_).empty());
    EXPECT_FALSE(search.converged());
    for (const Proposal& p : open) {
      tried.insert(p.decisions[0].value);
      search.Observe(p.schedule, 1e-3 * static_cast<double>(9 - p.decisions[0].value));
    }
    open = search.Propose(8, draft_);
  }
  EXPECT_TRUE(search.converged());
  EXPECT_EQ(tried, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(SearchTest, ConvergenceWaitsForOpenProposals) {
  Search search = MakeSearch(18);
  std::vector<Proposal> late;  // from a visit that outlasts all others
  for (int round = 0; round < 200; ++round) {
    const std::vector<Proposal> proposals = search.Propose(16, draft_);
    if (round == 1) late = proposals;
    if (proposals.empty()) break;
    for (const Proposal& p : proposals) {
      if (round != 1) search.Observe(p.schedule, 1e-3);  // equal times: no progress
    }
  }
  ASSERT_FALSE(late.empty());
  EXPECT_FALSE(search.converged());
  for (const Proposal& p : late) search.Observe(p.schedule, 1e-4);
  EXPECT_FALSE(search.Propose(16, draft_).empty()) << "it leads to more";
  EXPECT_FALSE(search.converged());
}

// Scores only rank candidates, so the measured times give them their scale in seconds.
TEST_F(SearchTest, PredictionsLieWhereTheTimesDo) {
  Search search = MakeSearch(8);
  const auto draft_seconds = [](const Proposal& p) { return std::exp(p.features[kAnalyticLogSeconds]); };
  for (const Proposal& p : search.Propose(8, draft_)) {
    EXPECT_EQ(p.predicted_seconds, std::nullopt);
    search.Observe(p.schedule, 3 * draft_seconds(p));
  }
  const auto proposals = search.Propose(8, draft_);
  ASSERT_FALSE(proposals.empty());
  for (const Proposal& p : proposals) {
    ASSERT_TRUE(p.predicted_seconds.has_value());
    EXPECT_NEAR(*p.predicted_seconds / draft_seconds(p), 3, 1e-6);
  }
}

TEST_F(SearchTest, SamplesCarryFailuresAndTimes) {
  Search search = MakeSearch(9);
  const auto proposals = search.Propose(4, draft_);
  ASSERT_EQ(proposals.size(), 4u);
  search.Observe(proposals[0].schedule, 2e-3, 0.1);
  search.Observe(proposals[1].schedule, std::nullopt);
  std::vector<Sample> samples;
  search.CollectSamples(7, &samples);
  ASSERT_EQ(samples.size(), 2u) << "what is still under way teaches nothing";
  EXPECT_EQ(samples[0].workload, 7);
  EXPECT_NE(samples[0].seconds.has_value(), samples[1].seconds.has_value());
}

}  // namespace
}  // namespace hone::tuner
