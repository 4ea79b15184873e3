// SPDX-License-Identifier: Apache-2.0
// Cost models rank candidates by expected speed: the analytic cost model (analytic_model.h) and boosted trees.
//
// Scores compare candidates of one workload and have no other meaning. The trees (XGBoost) learn from measured times a
// correction of a prior: the analytic model, or trees that learned from other models (pretrained.h). They are trained
// again from scratch when enough samples were added; a few thousand rows take some tenths of a second. Start with
// CostModel::Score; train with BoostedModel::Train.
#ifndef HONE_TUNER_COST_MODEL_H_
#define HONE_TUNER_COST_MODEL_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tuner/features.h"

namespace hone::tuner {

class CostModel {
 public:
  virtual ~CostModel() = default;
  // One finite score per candidate; higher is faster. Thread-safe.
  virtual std::vector<double> Score(std::span<const Features* const> candidates) const = 0;
};

// Scores by the analytic estimate, which is feature kAnalyticLogSeconds. Needs no training data.
class AnalyticModel : public CostModel {
 public:
  std::vector<double> Score(std::span<const Features* const> candidates) const override;
};

// Scores all candidates alike, so that ranking keeps their random order. For searches without a cost model.
class UniformModel : public CostModel {
 public:
  std::vector<double> Score(std::span<const Features* const> candidates) const override {
    return std::vector<double>(candidates.size(), 0);
  }
};

// One measured candidate.
struct Sample {
  const Features* features = nullptr;
  int workload = 0;               // number of its workload; times are only compared within one workload
  std::optional<double> seconds;  // empty: it failed
  double noise = 0;               // spread of its repeats as a fraction of their median; noisy samples weigh less
};

class BoostedModel : public CostModel {
 public:
  struct Options {
    int rounds = 80;  // the most boosting rounds
    int depth = 6;    // of a tree
    uint64_t seed = 0;
  };
  // Trains a correction of `prior`. FailedPrecondition: fewer than 16 samples have a time. Internal: XGBoost failed.
  static absl::StatusOr<std::unique_ptr<BoostedModel>> Train(std::span<const Sample> samples, const Options& options,
                                                             std::shared_ptr<const CostModel> prior);
  // Writes the model to bytes, without its prior, and reads it. The read model's prior is always the analytic model, so
  // save only models that were trained with that one. FailedPrecondition: the model was trained on another number of
  // features. Internal: XGBoost cannot read it.
  absl::StatusOr<std::string> Save() const;
  static absl::StatusOr<std::unique_ptr<BoostedModel>> Load(std::string_view bytes);
  ~BoostedModel() override;

  std::vector<double> Score(std::span<const Features* const> candidates) const override;

 private:
  BoostedModel(void* booster, std::shared_ptr<const CostModel> prior) : booster_(booster), prior_(std::move(prior)) {}

  void* booster_;  // XGBoost's BoosterHandle; owned
  const std::shared_ptr<const CostModel> prior_;
  unsigned trees_ = 0;       // number of trees to use: more did not reduce the error on held-out samples
  double prior_weight_ = 0;  // factor on the prior's score, 0 to 1
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_COST_MODEL_H_
