// SPDX-License-Identifier: Apache-2.0
#include "tuner/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>

#include "base/random.h"

namespace hone::tuner {
namespace {

// Made-up candidates. The analytic cost model knows only some of the causes that make them slow.
struct Population {
  std::deque<Features> features;
  std::vector<double> seconds;

  explicit Population(uint64_t seed, int size, double scale, double noise = 0) {
    Random random(seed);
    for (int i = 0; i < size; ++i) {
      Features f(kFeatureCount, 0.0F);
      for (size_t k = 1; k < 12; ++k) f[k] = static_cast<float>(random.Uniform());
      const double draft = 1 + f[1];
      const double truth = draft * (1 + 2 * (f[2] > 0.5 ? 1 : 0) + f[3] * f[3]);
      f[kAnalyticLogSeconds] = static_cast<float>(std::log(draft * scale));
      features.push_back(std::move(f));
      seconds.push_back(truth * scale * std::exp(noise * (random.Uniform() - 0.5)));
    }
  }

  void AddTo(std::vector<Sample>* samples, int workload) const {
    for (size_t i = 0; i < features.size(); ++i) samples->push_back({&features[i], workload, seconds[i], 0.01});
  }
  std::vector<const Features*> pointers() const {
    std::vector<const Features*> all;
    for (const Features& f : features) all.push_back(&f);
    return all;
  }
};

std::shared_ptr<const CostModel> Draft() { return std::make_shared<AnalyticModel>(); }

// Returns the share of pairs that the scores order correctly.
double PairAccuracy(const CostModel& model, const Population& population) {
  const auto pointers = population.pointers();
  const std::vector<double> scores = model.Score(pointers);
  int64_t right = 0, all = 0;
  for (size_t a = 0; a < scores.size(); ++a) {
    for (size_t b = a + 1; b < scores.size(); ++b) {
      ++all;
      right += (scores[a] > scores[b]) == (population.seconds[a] < population.seconds[b]) ? 1 : 0;
    }
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

TEST(CostModelTest, BoostedModelCorrectsTheAnalyticModel) {
  const Population slow(1, 200, 1e-2, 0.05), fast(2, 200, 1e-5, 0.05), unseen(3, 200, 1e-5);
  std::vector<Sample> samples;
  slow.AddTo(&samples, 0);
  fast.AddTo(&samples, 1);
  const auto model = BoostedModel::Train(samples, {}, Draft());
  ASSERT_TRUE(model.ok()) << model.status();
  const double draft = PairAccuracy(AnalyticModel(), unseen), learned = PairAccuracy(**model, unseen);
  EXPECT_GT(learned, 0.9);
  EXPECT_GT(learned, draft + 0.05);
}

TEST(CostModelTest, FailedCandidatesAreRankedLast) {
  const Population population(4, 300, 1e-4);
  std::vector<Sample> samples;
  population.AddTo(&samples, 0);
  for (Sample& s : samples) {
    if ((*s.features)[5] > 0.7F) s.seconds.reset();
  }
  const auto model = BoostedModel::Train(samples, {}, Draft());
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<double> scores = (*model)->Score(population.pointers());
  double good = 0, bad = 0;
  int goods = 0, bads = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const bool failed = population.features[i][5] > 0.7F;
    (failed ? bad : good) += scores[i];
    ++(failed ? bads : goods);
  }
  EXPECT_GT(good / goods, bad / bads + 1);
}

TEST(CostModelTest, TooFewSamplesAreAnError) {
  const Population population(5, 8, 1e-4);
  std::vector<Sample> samples;
  population.AddTo(&samples, 0);
  EXPECT_EQ(BoostedModel::Train(samples, {}, Draft()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(BoostedModel::Train({}, {}, Draft()).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CostModelTest, SameSeedSameScores) {
  const Population population(6, 100, 1e-4);
  std::vector<Sample> samples;
  population.AddTo(&samples, 0);
  const auto a = BoostedModel::Train(samples, {.seed = 5}, Draft()),
             b = BoostedModel::Train(samples, {.seed = 5}, Draft());
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ((*a)->Score(population.pointers()), (*b)->Score(population.pointers()));
}

TEST(CostModelTest, APriorThatLearnedElsewhereHelpsWhereThereIsLittleToLearnFrom) {
  const Population elsewhere(11, 400, 1e-3, 0.05), few(12, 20, 1e-5, 0.05), unseen(13, 300, 1e-5);
  std::vector<Sample> before, samples;
  elsewhere.AddTo(&before, 0);
  few.AddTo(&samples, 0);
  const auto prior = BoostedModel::Train(before, {}, Draft());
  ASSERT_TRUE(prior.ok());
  const std::shared_ptr<const CostModel> shared = BoostedModel::Load((*prior)->Save().value()).value();
  const auto corrected = BoostedModel::Train(samples, {}, shared), alone = BoostedModel::Train(samples, {}, Draft());
  ASSERT_TRUE(corrected.ok() && alone.ok());
  EXPECT_GT(PairAccuracy(**corrected, unseen), PairAccuracy(**alone, unseen) + 0.03);
  EXPECT_GE(PairAccuracy(**corrected, unseen), PairAccuracy(*shared, unseen) - 0.02) << "little takes nothing away";
}

TEST(CostModelTest, AModelThatIsReadBackScoresAsItDid) {
  const Population population(8, 200, 1e-4, 0.05);
  std::vector<Sample> samples;
  population.AddTo(&samples, 0);
  const auto model = BoostedModel::Train(samples, {}, Draft());
  ASSERT_TRUE(model.ok());
  const auto bytes = (*model)->Save();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto back = BoostedModel::Load(*bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  const std::vector<double> expected = (*model)->Score(population.pointers());
  const std::vector<double> scores = (*back)->Score(population.pointers());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(scores[i], expected[i], 1e-5);
  EXPECT_EQ(BoostedModel::Load("no model").status().code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(BoostedModel::Load("").ok());
}

TEST(CostModelTest, NothingToScoreIsFine) {
  const Population population(7, 40, 1e-4);
  std::vector<Sample> samples;
  population.AddTo(&samples, 0);
  const auto model = BoostedModel::Train(samples, {}, Draft());
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE((*model)->Score({}).empty());
  EXPECT_TRUE(AnalyticModel().Score({}).empty());
}

}  // namespace
}  // namespace hone::tuner
