// SPDX-License-Identifier: Apache-2.0
// The features of a scheduled kernel: a vector of fixed length, the input of the learned cost model.
//
// They are read off loops, bindings and accesses (nest_facts.h) without lowering, for more than ten thousand kernels a
// second and core. Sizes are logarithms (base 2 of 1 + x), shares are between 0 and 1. Start with ExtractFeatures. Any
// change of the vector makes models trained on the old one useless; train the pretrained one (pretrained.h) again then.
#ifndef HONE_TUNER_FEATURES_H_
#define HONE_TUNER_FEATURES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/size_points.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace hone::tuner {

using Features = std::vector<float>;

// Index of the natural logarithm of the seconds that the analytic cost model estimates.
inline constexpr size_t kAnalyticLogSeconds = 0;
// Index of log2(1 + bytes of the stages that are computed inside loops).
inline constexpr size_t kLogLocalBytes = 10;
// The number of features for a target without a grid. With a grid there are kLaneFeatures more, which describe how
// copies and instructions overlap.
extern const size_t kFeatureCount;
inline constexpr size_t kLaneFeatures = 8;

// With `points`: the means over these, but for the estimate, which is that of the sum of seconds. Without: at the
// largest sizes.
Features ExtractFeatures(const schedule::State& state, const target::Target& target,
                         std::span<const SizePoint> points = {});

}  // namespace hone::tuner

#endif  // HONE_TUNER_FEATURES_H_
