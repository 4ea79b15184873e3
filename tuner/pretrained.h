// SPDX-License-Identifier: Apache-2.0
// Pretrained cost models, which rank candidates before the search has measured any.
//
// hone-train-model (docs/TESTING.md) trains one from the project's own records for each kind of target that has enough
// of them. The models are files in tuner/pretrained and are built into the program. Decision 0212 names their training
// data and their benefit.
#ifndef HONE_TUNER_PRETRAINED_H_
#define HONE_TUNER_PRETRAINED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "tuner/cost_model.h"

namespace hone::tuner {

// The model for candidates of this target; null: there is none. Every call loads a new model. FailedPrecondition: the
// model was trained on another number of features.
absl::StatusOr<std::shared_ptr<const CostModel>> PretrainedModel(const target::Target& target);

}  // namespace hone::tuner

#endif  // HONE_TUNER_PRETRAINED_H_
