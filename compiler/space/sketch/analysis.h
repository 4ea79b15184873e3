// SPDX-License-Identifier: Apache-2.0
// Questions about stages: their loads, their values and their layout in memory, and how threads should share loops.
// Nothing here changes a schedule.
#ifndef HONE_COMPILER_SPACE_SKETCH_ANALYSIS_H_
#define HONE_COMPILER_SPACE_SKETCH_ANALYSIS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/simplify.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/apply.h"

namespace hone::space {

// The names of all stages of the state, producers first. Inlined stages are no longer among them.
std::vector<std::string> StagesOf(const schedule::State& state);
// The stages that load from the buffer, and the number of loads in all stages.
std::vector<std::string> Readers(const schedule::State& state, const ir::BufferNode* buffer);
int CountLoads(const schedule::State& state, const ir::BufferNode* buffer);

std::vector<ir::Load> LoadsOf(const ir::Stage& stage);
std::vector<int64_t> ExtentsOf(const ir::Stage& stage);  // the largest extents of its axes, without reduction axes
using schedule::AxisRanges;
// How far apart in the row-major buffer, in elements, the load's elements for neighbouring values of `axis` are. 0: the
// axis does not move the load. nullopt: the distance is not constant. Open sizes count as their largest values.
std::optional<int64_t> StrideOf(const ir::Load& load, const std::string& axis, const ir::Ranges& ranges);
// Whether the stage reads `buffer` only at its own axes, in order.
bool ReadsInPlace(const ir::Stage& stage, const ir::Buffer& buffer);

// How many leading axes all stages share, as the rows of a softmax. Up to that number, index d of every load from
// another stage is axis d of the reading stage.
size_t CommonAxes(const schedule::State& state);
// The bytes that the stage makes for one row, where rows are counted by its first `common` axes.
int64_t RowBytes(const ir::Stage& stage, size_t common);

// Whether the stage is a sum of products of two loads of different buffers.
bool IsContraction(const ir::Stage& stage);
// Whether a reduction slides a window: an index is moved by one of its axes and by one that it reduces.
bool HasWindow(const ir::Stage& stage);
int CountNodes(const ir::Expr& e);
bool HasCall(const ir::Expr& e);

// Sketch::TailOf for the tiles of an axis.
inline schedule::Tail TailOf(const ir::Size& extent, int64_t tile) {
  if (extent.min() >= tile || (!extent.IsFixed() && Divides(tile, extent))) return schedule::Tail::kShift;
  return extent.IsFixed() ? schedule::Tail::kMask : schedule::Tail::kPeel;
}
// Extents that an axis may have, evenly from the smallest to the largest. All are multiples of what always divides the
// size. A fixed size is the only one.
std::vector<int64_t> TypicalExtents(const ir::Size& size);
// The least power of two that is not below n.
int64_t PowerOf2Ceil(int64_t n);

// The number of iterations of a task, if threads share `extent` iterations in about `tasks` tasks. The last task starts
// earlier instead of being shorter, so it repeats work of the one before. If both run at the same time, two threads
// write the same cache lines, which may take three times as long. There are fewer tasks if that leaves the slowest
// thread clearly less to do.
int64_t TaskSize(int64_t extent, int64_t tasks, int64_t threads);
// The numbers of tasks that a loop may be split into: `counts`, and a few for each thread.
std::vector<int64_t> TaskCounts(std::set<int64_t> counts, int64_t threads);
// The iterations of the busiest thread, if `batch` loops of `extent` are split into tasks of `size`.
int64_t BusiestThreadIterations(int64_t extent, int64_t size, int64_t batch, int64_t threads);
inline constexpr double kWorthwhileGainMin = 1.05;  // another size is worth it if the work shrinks by this factor

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_ANALYSIS_H_
