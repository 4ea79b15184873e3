// SPDX-License-Identifier: Apache-2.0
// Rules for reductions on CPUs that are taken apart before they are tiled.
#ifndef HONE_COMPILER_SPACE_SKETCH_REDUCTION_H_
#define HONE_COMPILER_SPACE_SKETCH_REDUCTION_H_

#include <cstdint>
#include <string>

#include "compiler/space/sketch.h"

namespace hone::space {

// Whether the innermost axis of a reduction runs along memory, far enough for partial results that fill vectors.
bool FitsVectors(const Sketch& sketch, const ir::Stage& stage);
// How many partial results there may be at once for one element of such a stage.
int64_t MostPartialResults(const Sketch& sketch, const ir::Stage& stage);
// Gives such a reduction vectors of partial results. False, and nothing done, for any other stage.
absl::StatusOr<bool> ScheduleVectorReduction(Sketch& sketch, const std::string& stage);
// Long reductions with few results are taken apart, so that threads share them. True if there was one.
absl::StatusOr<bool> SplitLongReductions(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_REDUCTION_H_
