// SPDX-License-Identifier: Apache-2.0
// Cost models: which of these candidates will be fastest? Two of them, the analytic draft and boosted trees.
//
// A score is good for ranking candidates of one workload, nothing else. The trees (XGBoost) learn from what was
// measured, as a correction of what was known before, their prior: the draft, or trees that learned from other models
// (pretrained.h). They are trained anew whenever enough has been added: a few thousand rows take some tenths of a
// second. Start with Score; train with BoostedModel::Train.
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
  // Higher is faster. One per candidate, finite. Thread-safe.
  virtual std::vector<double> Score(std::span<const Features* const> candidates) const = 0;
};

// The draft's prediction, which is one of the features. Needs no data.
class DraftModel : public CostModel {
 public:
  std::vector<double> Score(std::span<const Features* const> candidates) const override;
};

// Finds all alike: of candidates that were drawn at random it takes any.
class BlindModel : public CostModel {
 public:
  std::vector<double> Score(std::span<const Features* const> candidates) const override {
    return std::vector<double>(candidates.size(), 0);
  }
};

// One measured candidate.
struct Sample {
  const Features* features = nullptr;
  int workload = 0;               // its number: times are compared within one only
  std::optional<double> seconds;  // empty: it failed
  double noise = 0;               // spread of its repeats as a fraction; noisy ones count less
};

class BoostedModel : public CostModel {
 public:
  struct Options {
    int rounds = 80;  // of boosting, at most
    int depth = 6;
    uint64_t seed = 0;
  };
  // Corrects `prior`. FailedPrecondition if there is too little to learn from (less than 16 timed samples); Internal if
  // XGBoost fails.
  static absl::StatusOr<std::unique_ptr<BoostedModel>> Train(std::span<const Sample> samples, const Options& options,
                                                             std::shared_ptr<const CostModel> prior);
  // A model of which the draft is the prior, as bytes, and back. FailedPrecondition: it was trained on features of
  // another number; Internal: XGBoost cannot read it.
  absl::StatusOr<std::string> Save() const;
  static absl::StatusOr<std::unique_ptr<BoostedModel>> Load(std::string_view bytes);
  ~BoostedModel() override;

  std::vector<double> Score(std::span<const Features* const> candidates) const override;

 private:
  BoostedModel(void* booster, std::shared_ptr<const CostModel> prior) : booster_(booster), prior_(std::move(prior)) {}

  void* booster_;  // XGBoost's BoosterHandle
  const std::shared_ptr<const CostModel> prior_;
  unsigned trees_ = 0;       // that help on samples held out
  double prior_weight_ = 0;  // how far the prior was to be believed
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_COST_MODEL_H_
