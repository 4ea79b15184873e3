// SPDX-License-Identifier: Apache-2.0
// Rules that split reductions on CPUs into partial results before they are tiled.
#ifndef HONE_COMPILER_SPACE_SKETCH_REDUCTION_H_
#define HONE_COMPILER_SPACE_SKETCH_REDUCTION_H_

#include <cstdint>
#include <string>

#include "compiler/space/sketch.h"

namespace hone::space {

// Whether the innermost axis of a reduction is contiguous in memory, and long enough for vectors of partial results.
bool FitsVectors(const Sketch& sketch, const ir::Stage& stage);
// The most partial results that exist at once for one result, after ScheduleVectorReduction: those of all stages that
// it adds. In elements, not in vectors.
int64_t PartialResultsMax(const Sketch& sketch, const ir::Stage& stage);
// Splits such a reduction (rfactor): up to three new stages compute vectors of partial results, each from the one
// before, and the stage reduces the last ones. All of them keep their initial loops, so the caller schedules and
// vectorizes them. The chooser decides the number of vectors and of stages. False, and nothing done, for any other
// stage.
absl::StatusOr<bool> ScheduleVectorReduction(Sketch& sketch, const std::string& stage);
// Splits long reductions with few results into parts, which threads share. The chooser may leave one whole. Returns
// true if any was split.
absl::StatusOr<bool> SplitLongReductions(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_REDUCTION_H_
