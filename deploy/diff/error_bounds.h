// SPDX-License-Identifier: Apache-2.0
// How far a correct package may be from the unoptimized model, value by value.
//
// A package adds in another order, keeps more digits where nodes are fused, and folds scales into weights. The bounds
// are those by which tuning accepts a kernel (tuner/batch.cc), widened for 16-bit floats and for rounding to integers.
#ifndef HONE_DEPLOY_DIFF_ERROR_BOUNDS_H_
#define HONE_DEPLOY_DIFF_ERROR_BOUNDS_H_

#include <set>
#include <vector>

#include "compiler/graph/plan.h"
#include "deploy/diff/compare_elements.h"

namespace hone::diff {

// Per tensor of the unoptimized plan: what its elements may differ by, if the tensors in `known` have the package's own
// elements. The bounds grow with what is computed since the last known tensors: with the root of the terms of its
// longest sum, and with the rounding of its types. Integers must be equal unless they are rounded from computed floats;
// these may differ by 1. rounds_factors: the package's target may round factors to TF32.
std::vector<Tolerance> ErrorBounds(const graph::Plan& plan, const std::set<graph::TensorId>& known,
                                   bool rounds_factors);

}  // namespace hone::diff

#endif  // HONE_DEPLOY_DIFF_ERROR_BOUNDS_H_
