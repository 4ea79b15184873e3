// SPDX-License-Identifier: Apache-2.0
// Splits a long reduction with few results for threads: each part of the reduction has partial results of its own,
// which threads compute in parallel. A short reduction then combines them.
#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/reduction.h"
#include "compiler/space/sketch/tiling.h"

namespace hone::space {
namespace {

constexpr int64_t kResultsPerThreadMax = 64;  // with more results per thread, threads share results instead
constexpr int64_t kSplitStepsMin = 1 << 16;   // the fewest steps of all results together that are worth a split

int64_t Product(const std::vector<ir::Axis>& axes) {
  int64_t product = 1;
  for (const ir::Axis& axis : axes) product *= axis.extent.max();
  return product;
}

// The length of a part: a divisor of the extent if one is at most twice too long, because equal parts need no
// condition.
int64_t PartLength(int64_t extent, int64_t parts) {
  const int64_t length = (extent + parts - 1) / parts;
  for (int64_t l = length; l < std::min(2 * length, extent); ++l) {
    if (extent % l == 0) return l;
  }
  return length;
}

// The number of tasks that threads can share without a split: single results if vectors lie along the reduction, else
// tiles of the last axis.
int64_t TasksOfResults(const Sketch& sketch, const ir::Stage& s) {
  const int64_t results = Product(s.axes);
  const auto last = std::find_if(s.axes.rbegin(), s.axes.rend(), [](const ir::Axis& a) { return a.extent.max() > 1; });
  if (last == s.axes.rend() || FitsVectors(sketch, s)) return results;
  const int axis = static_cast<int>(s.axes.rend() - last) - 1;
  const int64_t tile = TileModel(s, sketch.target).Cheapest(axis).sizes[static_cast<size_t>(axis)];
  return results / last->extent.max() * ((last->extent.max() + tile - 1) / tile);
}

absl::StatusOr<bool> Split(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  const int64_t results = Product(s.axes), steps = Product(s.reduce_axes), threads = sketch.target.threads;
  if (threads == 1 || results > std::min(steps, kResultsPerThreadMax * threads) || results * steps < kSplitStepsMin) {
    return false;
  }
  // The outermost axis that is long enough is split, so that parts lie apart in memory.
  const auto long_enough = std::find_if(s.reduce_axes.begin(), s.reduce_axes.end(),
                                        [&](const ir::Axis& a) { return a.extent.max() >= 4 * threads; });
  if (long_enough == s.reduce_axes.end()) return false;
  const bool partials = PrefersPartialResults(sketch.state, s, sketch.target);  // then every result is a task
  const bool enough_results = (partials ? results : TasksOfResults(sketch, s)) >= 4 * threads;
  const int64_t parts =
      sketch.chooser.OneOf(stage + ".parts", TaskCounts({1}, threads), enough_results ? 1 : 2 * threads);
  if (parts == 1) return false;
  if (partials) HONE_RETURN_IF_ERROR(LayAlongReduction(sketch, stage));  // the parts read the packed operands, too
  HONE_RETURN_IF_ERROR(
      sketch.Do(schedule::Rfactor{stage, long_enough->name, PartLength(long_enough->extent.max(), parts), false}));
  return true;
}

}  // namespace

absl::StatusOr<bool> SplitLongReductions(Sketch& sketch) {
  std::vector<std::string> stages;
  for (const schedule::Nest& nest : sketch.state.nests) {
    if (ir::Folds(nest.stage.reduction)) stages.push_back(nest.stage.buffer->name);
  }
  bool any = false;
  for (const std::string& stage : stages) {
    HONE_ASSIGN_OR_RETURN(const bool split, Split(sketch, stage));
    any |= split;
  }
  return any;
}

}  // namespace hone::space
