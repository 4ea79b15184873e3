// SPDX-License-Identifier: Apache-2.0
// Cost models that the project made of its own records, and ships: what a search knows before it has measured anything.
//
// One for each kind of target of which there are records enough, made by hone-train-model (docs/TESTING.md) and kept
// in tuner/pretrained; a part of the program. Decision 0212 has what they were made of, and what they are worth.
#ifndef HONE_TUNER_PRETRAINED_H_
#define HONE_TUNER_PRETRAINED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "tuner/cost_model.h"

namespace hone::tuner {

// For candidates of that target; null if there is none. A model of its own for every caller. FailedPrecondition: the
// features are others than those it was trained on.
absl::StatusOr<std::shared_ptr<const CostModel>> PretrainedModel(const target::Target& target);

}  // namespace hone::tuner

#endif  // HONE_TUNER_PRETRAINED_H_
