// SPDX-License-Identifier: Apache-2.0
// Rules of the sketch for targets with lanes. Private to space/; lanes.cc has stages without reduction, lane_rows.cc
// groups that make a row each, lane_reduction.cc every other reduction.
#ifndef HONE_COMPILER_SPACE_SKETCH_LANES_H_
#define HONE_COMPILER_SPACE_SKETCH_LANES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {

// lanes.cc: chooses a number of lanes: one of `counts` that is at most `most`; `most` if all are above it.
int64_t ChooseLanes(Sketch& sketch, const std::string& name, std::vector<int64_t> counts, int64_t preferred,
                    int64_t most);

// lanes.cc: each lane computes one element, or one vector. If loads lie across the results, each lane computes a block,
// so that lanes that load together, and lanes that store together, access neighbours in memory.
absl::Status ScheduleLaneElementwise(Sketch& sketch, const std::string& stage);

// lane_rows.cc: a group for each row of the output, whose lanes share all reductions of the workload. False, and
// nothing done, if the workload is not of that kind.
absl::StatusOr<bool> ScheduleLaneRows(Sketch& sketch);
// A group for each element of `reader`, whose lanes share the reduction `stage` that it reads in place.
absl::Status ShareRow(Sketch& sketch, const std::string& reader, const std::string& stage);

// lane_reduction.cc: the reduction `stage` and `reader`, which reads it in place. Either a lane computes each element,
// or a group computes one or several, and its lanes share the reduction. A reduction with too few groups is split
// first: a launch of its own computes partial results.
absl::Status ScheduleLaneReduction(Sketch& sketch, const std::string& reader, const std::string& stage);
// The number of values that are reduced to one result.
int64_t ReduceSteps(const ir::Stage& s);
const ir::Axis& LongestReduceAxis(const ir::Stage& s);
// The stage of the partial results that this stage reduces. The stage must have been split by Rfactor; this is not
// checked.
std::string PartialResultsOf(const Sketch& sketch, const std::string& stage);
// Whether neighbours in memory of its largest operand lie along an axis of the reduction; along the last axis of its
// result.
bool ReadsAlongReduction(const ir::Stage& s);
bool ReadsAlongResult(const ir::Stage& s);
// Whether the stage is a product of a matrix and a vector, or several such, whose matrix is read along the reduction or
// can be packed so before the kernel runs. Tiles would not reuse any element of the matrix.
bool IsVectorProduct(const schedule::State& state, const ir::Stage& s);

inline constexpr int64_t kUnrolledStepsMax = 27;    // the most steps of a reduction that are unrolled
inline constexpr int64_t kLaneSharedStepsMin = 64;  // the fewest steps of a whole reduction that lanes should share
// The fewest steps of a row that several groups should share, if there are not enough rows for all units.
inline constexpr int64_t kSplitRowStepsMin = 1 << 16;

// Fuses the loops [first, end) of the stage into one, and returns its name.
absl::StatusOr<std::string> FuseFrom(Sketch& sketch, const std::string& stage, size_t first, size_t end);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_LANES_H_
