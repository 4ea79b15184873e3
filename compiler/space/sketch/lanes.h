// SPDX-License-Identifier: Apache-2.0
// Rules of the sketch for targets with lanes. Private to space/; lanes.cc has stages without reduction, lane_rows.cc
// groups that make a row each, lane_reduction.cc every other reduction.
#ifndef HONE_COMPILER_SPACE_SKETCH_LANES_H_
#define HONE_COMPILER_SPACE_SKETCH_LANES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/space/sketch.h"

namespace hone::space {

// lanes.cc: a number of lanes: one of `counts` that is at most `most`, or `most` where all are above it.
int64_t ChooseLanes(Sketch& sketch, const std::string& name, std::vector<int64_t> counts, int64_t preferred,
                    int64_t most);

// lanes.cc: every element a lane's work; where loads lie across the results, blocks of elements are, so that lanes that
// load together and lanes that store together find neighbours.
absl::Status ScheduleLaneElementwise(Sketch& sketch, const std::string& stage);

// lane_rows.cc: a group for each row of the output, whose lanes share all reductions of the workload. False, and
// nothing done, if the workload is not of that kind.
absl::StatusOr<bool> ScheduleLaneRows(Sketch& sketch);
// A group for each element of `reader`, whose lanes share the reduction `stage` that it reads in place.
absl::Status ShareRow(Sketch& sketch, const std::string& reader, const std::string& stage);

// lane_reduction.cc: the reduction `stage` and `reader`, which reads it in place. A lane for each element, or a group
// for one or several, whose lanes share the reduction. What leaves too few groups is taken apart first: partial results
// are a launch of their own.
absl::Status ScheduleLaneReduction(Sketch& sketch, const std::string& reader, const std::string& stage);
// Steps of a reduction for one result.
int64_t ReduceSteps(const ir::Stage& s);
const ir::Axis& LongestReduced(const ir::Stage& s);
// The stage whose partial results this one takes together, after rfactor.
std::string PartsOf(const Sketch& sketch, const std::string& stage);
// Whether what it reads most of lies side by side along an axis that it sums over; along the last axis of its result.
bool ReadsAlongReduction(const ir::Stage& s);
bool ReadsAlongResult(const ir::Stage& s);
// A product of a matrix and a vector, or several such, whose matrix is read along the reduction, or can be laid out so
// before the kernel runs: nothing for tiles to use twice.
bool IsVectorProduct(const schedule::State& state, const ir::Stage& s);

inline constexpr int64_t kUnrolledWindow = 27;   // steps of a reduction that are written out
inline constexpr int64_t kSharedReduction = 64;  // steps that are worth sharing among the lanes of a group
// A row so long that several groups should share it, where there are not enough rows for all units.
inline constexpr int64_t kApartReduction = 1 << 16;

// inline.cc: padding that no step has placed and only windows of few steps read, disappears into these: a launch of its
// own would bring all of it through memory.
absl::Status InlinePadding(Sketch& sketch);

// Axes [first, end) of the stage as one loop; its name.
absl::StatusOr<std::string> FuseFrom(Sketch& sketch, const std::string& stage, size_t first, size_t end);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_LANES_H_
