// SPDX-License-Identifier: Apache-2.0
// A scheduled kernel as a vector of numbers of fixed length: what the learned cost model sees.
//
// Straight from loops, bindings and accesses (nest_facts.h), without lowering; more than ten thousand a second and
// core. Sizes are logarithms (base 2 of 1 + x), shares stay between 0 and 1. Start with ExtractFeatures. Any change of
// the vector makes models trained on the old one worthless: the pretrained one (pretrained.h) is then trained anew.
#ifndef HONE_TUNER_FEATURES_H_
#define HONE_TUNER_FEATURES_H_

#include <cstddef>
#include <vector>

#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace hone::tuner {

using Features = std::vector<float>;

// Feature 0 is the draft model's natural logarithm of seconds.
inline constexpr size_t kDraftLogSeconds = 0;
// The logarithm to base 2 of 1 + the bytes that stages take that are computed inside loops.
inline constexpr size_t kLogLocalBytes = 10;
// Of a target without lanes; one with lanes has kLaneFeatures more, of what overlaps.
extern const size_t kFeatureCount;
inline constexpr size_t kLaneFeatures = 8;

Features ExtractFeatures(const schedule::State& state, const target::Target& target);

}  // namespace hone::tuner

#endif  // HONE_TUNER_FEATURES_H_
