// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/rows.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/reduction.h"

namespace hone::space {
namespace {

using schedule::Nest;

constexpr int64_t kSerialElementsMax = 8192;
constexpr int64_t kRowBytesMax = 256 << 10;
constexpr int64_t kUnrolledOpsMax = 8;    // the most vector operations that are unrolled
constexpr int64_t kColumnVectorsMax = 4;  // the most vectors of neighbouring results that are computed together

// The iterations of the stage that has the most.
int64_t Iterations(const schedule::State& state) {
  int64_t most = 0;
  for (const Nest& nest : state.nests) {
    int64_t count = 1;
    for (const ir::Axis& axis : nest.stage.axes) count *= axis.extent.max();
    for (const ir::Axis& axis : nest.stage.reduce_axes) count *= axis.extent.max();
    most = std::max(most, count);
  }
  return most;
}

bool IsRows(const Sketch& sketch, size_t common) {
  const schedule::State& state = sketch.state;
  if (state.outputs.size() != 1 || common == 0) return false;
  int reductions = 0;
  int64_t row_bytes = 0;
  for (const Nest& nest : state.nests) {
    if (nest.prepared) return false;
    reductions += nest.stage.reduction != ir::Reduction::kNone ? 1 : 0;
    if (state.IsOutput(nest.stage.buffer.get())) continue;
    const int64_t results = FitsVectors(sketch, nest.stage) ? PartialResultsMax(sketch, nest.stage) : 1;
    row_bytes += results * RowBytes(nest.stage, common);
  }
  return reductions >= 1 && state.nests.size() >= 2 && row_bytes <= kRowBytesMax;
}

}  // namespace

absl::Status VectorizeLast(Sketch& sketch, const std::string& stage, size_t common) {
  const Nest& nest = sketch.Get(stage);
  const ir::Stage& s = nest.stage;
  if (s.axes.size() <= common) return absl::OkStatus();
  const ir::Axis axis = s.axes.back();
  const int64_t width = std::min<int64_t>(sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype))),
                                          PowerOf2Ceil(axis.extent.max()));
  if (width <= 1) {  // one result: unroll the reduction of the last few partial results
    if (s.reduce_axes.size() != 1 || !s.reduce_axes[0].extent.IsFixed()) return absl::OkStatus();
    if (s.reduce_axes[0].extent.max() > kUnrolledOpsMax) return absl::OkStatus();
    return sketch.Do(schedule::Annotate{s.reduce_axes[0].name, ir::LoopKind::kUnrolled});
  }
  std::vector<std::string> reduce;
  for (const ir::Axis& r : s.reduce_axes) reduce.push_back(r.name);
  const int64_t vectors = (axis.extent.max() + width - 1) / width;
  const int64_t steps = s.reduce_axes.empty() ? 0 : s.reduce_axes.back().extent.max();
  // A reduction masks its last tile: an overlapping tile would add elements twice.
  const schedule::Tail tail = reduce.empty() ? TailOf(axis.extent, width) : schedule::Tail::kMask;
  HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch.Split(axis.name, width, tail));
  if (!reduce.empty()) {
    // The reduction loops go outside and the vectors are unrolled inside, so that partial results stay in registers.
    schedule::Reorder order{std::move(reduce)};
    order.loops.push_back(split.outer);
    order.loops.push_back(split.inner);
    HONE_RETURN_IF_ERROR(sketch.Do(std::move(order)));
    if (vectors <= kUnrolledOpsMax) {
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{split.outer, ir::LoopKind::kUnrolled}));
    }
    // If a short reduction axis is unrolled, only the last vector has a condition.
    if (steps > 1 && steps * vectors <= kUnrolledOpsMax) {
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{s.reduce_axes.back().name, ir::LoopKind::kUnrolled}));
    }
  }
  return sketch.Do(schedule::Annotate{split.inner, ir::LoopKind::kVectorized});
}

namespace {

// Fuses the loops around a row, and shares the rows out to threads. Returns the loop over the rows of a task.
absl::StatusOr<std::string> ShareRows(Sketch& sketch, const std::vector<std::string>& around) {
  HONE_ASSIGN_OR_RETURN(const std::string row, sketch.FuseAll(around));
  const bool small = Iterations(sketch.state) < kSerialElementsMax || sketch.target.threads == 1;
  const int64_t threads = sketch.target.threads;
  const int64_t chunks =
      sketch.chooser.OneOf("rows.chunks", TaskCounts({1, 2, 4, 8, 16, 32}, threads), small ? 1 : 2 * threads);
  const int64_t size = TaskSize(sketch.MaxExtent(row), chunks, threads);
  HONE_ASSIGN_OR_RETURN(const SplitLoops task, sketch.Split(row, size, schedule::Tail::kShift));
  if (chunks > 1) HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{task.outer, ir::LoopKind::kParallel}));
  return task.inner;
}

// Whether the results of a reduction along memory read the same elements along their last axis, as the sums up to each
// element do. Vectors then lie along the results, and each element is loaded once for all of them.
bool SharesElements(const ir::Stage& s) {
  if (s.reduction == ir::Reduction::kNone || s.axes.empty() || s.axes.back().extent.max() < 2) return false;
  const ir::Ranges ranges = AxisRanges(s);
  return std::ranges::all_of(LoadsOf(s),
                             [&](const ir::Load& load) { return StrideOf(load, s.axes.back().name, ranges) == 0; });
}

// Whether neighbours along the last axis of the results are neighbours in every operand of every stage.
bool HasColumns(const Sketch& sketch) {
  return std::ranges::all_of(sketch.state.nests, [&](const Nest& nest) {
    const ir::Stage& s = nest.stage;
    if (s.axes.empty() || s.axes.back().extent.max() < 2) return false;
    const ir::Ranges ranges = AxisRanges(s);
    return std::ranges::all_of(LoadsOf(s), [&](const ir::Load& load) {
      const auto stride = StrideOf(load, s.axes.back().name, ranges);
      return stride.has_value() && *stride >= 0 && *stride <= 1;
    });
  });
}

// Lays the vectors of a stage along a loop over a few columns. The loops of a reduction go outside, so that its results
// stay in registers.
absl::Status VectorizeColumns(Sketch& sketch, const std::string& stage, const std::string& columns) {
  const ir::Stage s = sketch.Get(stage).stage;
  const int64_t extent = sketch.MaxExtent(columns);
  const int64_t width =
      std::min<int64_t>(sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype))), PowerOf2Ceil(extent));
  if (width <= 1) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const SplitLoops vectors, sketch.Split(columns, width, schedule::Tail::kMask));
  schedule::Reorder order;
  for (const ir::Axis& axis : s.reduce_axes) order.loops.push_back(axis.name);
  order.loops.insert(order.loops.end(), {vectors.outer, vectors.inner});
  if (!s.reduce_axes.empty()) HONE_RETURN_IF_ERROR(sketch.Do(std::move(order)));
  if (extent > width) HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{vectors.outer, ir::LoopKind::kUnrolled}));
  return sketch.Do(schedule::Annotate{vectors.inner, ir::LoopKind::kVectorized});
}

// Schedules several reductions to the same single results, none along memory (a search along channels), for some
// neighbouring results at a time.
absl::Status ScheduleColumns(Sketch& sketch) {
  const std::string output = sketch.state.outputs[0]->name;
  if (sketch.Get(output).stage.reduction != ir::Reduction::kNone)
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::CacheWrite{output}));
  const ir::Stage out = sketch.Get(output).stage;
  const int64_t extent = out.axes.back().extent.max(), width = sketch.target.VectorWidth(4);
  std::vector<int64_t> options = {1};
  int64_t preferred = 1;
  const auto computed = [&](int64_t v) { return (extent + v * width - 1) / (v * width) * v * width; };
  for (int64_t v = 2; v <= kColumnVectorsMax && v * width <= extent; v *= 2) {
    options.push_back(v);
    if (computed(v) <= computed(1)) preferred = v;
  }
  const int64_t vectors = sketch.chooser.OneOf("columns.vectors", options, preferred);
  // An open axis may be shorter than the columns, so the last ones are masked.
  const schedule::Tail tail = out.axes.back().extent.IsFixed() ? schedule::Tail::kShift : schedule::Tail::kMask;
  HONE_ASSIGN_OR_RETURN(const SplitLoops columns,
                        sketch.Split(out.axes.back().name, std::min(extent, vectors * width), tail));
  std::vector<std::string> around;
  for (size_t d = 0; d + 1 < out.axes.size(); ++d) around.push_back(out.axes[d].name);
  around.push_back(columns.outer);
  HONE_ASSIGN_OR_RETURN(const std::string place, ShareRows(sketch, around));
  HONE_RETURN_IF_ERROR(VectorizeColumns(sketch, output, columns.inner));
  const std::vector<std::string> stages = StagesOf(sketch.state);
  for (auto it = stages.rbegin(); it != stages.rend(); ++it) {
    if (*it == output) continue;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{*it, place}));
    HONE_RETURN_IF_ERROR(VectorizeColumns(sketch, *it, sketch.Get(*it).stage.axes.back().name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> ScheduleRows(Sketch& sketch) {
  // The rule needs a reduction along the rest of a row. Matrix products and windows have templates of their own.
  int reductions = 0;
  bool along_memory = true;  // every reduction runs along contiguous memory
  for (const Nest& nest : sketch.state.nests) {
    if (nest.stage.reduction == ir::Reduction::kNone) continue;
    ++reductions;
    along_memory = along_memory && FitsVectors(sketch, nest.stage);
  }
  const size_t common = CommonAxes(sketch.state);
  if (!IsRows(sketch, common) || std::ranges::any_of(sketch.state.nests, HasWindow, &Nest::stage)) return false;
  if (sketch.state.outputs[0]->shape.size() == common && reductions < 2) {
    if (!along_memory || std::ranges::any_of(sketch.state.nests, SharesElements, &Nest::stage)) return false;
  }
  if (!along_memory && sketch.state.outputs[0]->shape.size() == common) {
    if (HasColumns(sketch)) {
      HONE_RETURN_IF_ERROR(ScheduleColumns(sketch));
      return true;
    }
  }
  const std::string output = sketch.state.outputs[0]->name;
  if (sketch.Get(output).stage.reduction != ir::Reduction::kNone)
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::CacheWrite{output}));
  for (const std::string& stage : StagesOf(sketch.state)) {
    if (sketch.Get(stage).stage.reduction != ir::Reduction::kNone)
      HONE_RETURN_IF_ERROR(ScheduleVectorReduction(sketch, stage).status());
  }
  const ir::Stage out = sketch.Get(output).stage;
  std::vector<std::string> around;
  for (size_t d = 0; d < common; ++d) around.push_back(out.axes[d].name);
  HONE_ASSIGN_OR_RETURN(const std::string place, ShareRows(sketch, around));
  HONE_RETURN_IF_ERROR(VectorizeLast(sketch, output, common));
  const std::vector<std::string> stages = StagesOf(sketch.state);
  for (auto it = stages.rbegin(); it != stages.rend(); ++it) {
    if (*it == output) continue;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{*it, place}));
    HONE_RETURN_IF_ERROR(VectorizeLast(sketch, *it, common));
  }
  return true;
}

}  // namespace hone::space
