// Rules for targets with lanes: element-wise stages, reductions of a lane each, and rows that all lanes of a group
// share.
#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Nest;
using schedule::Split;
using schedule::Tail;

constexpr int64_t kUnrolledWindow = 27;  // steps of a reduction that are written out
constexpr int64_t kFewElements = 4096;   // outputs that do not keep all lanes busy, one each
constexpr int64_t kLongReduction = 64;   // worth taking apart
constexpr int64_t kSecondLevel = 8;      // lanes that take the partial results of all lanes together

int64_t ReduceSteps(const ir::Stage& s) {
  int64_t steps = 1;
  for (const ir::Axis& axis : s.reduce_axes) steps *= axis.extent;
  return steps;
}

// Loops [first, end) of the stage as one; its name.
absl::StatusOr<std::string> FuseFrom(Sketch& sketch, const std::string& stage, size_t first, size_t end) {
  std::vector<std::string> loops;
  for (size_t i = first; i < end; ++i) loops.push_back(sketch.Get(stage).loops[i].name);
  return FuseAll(sketch, loops);
}

// The elements of a row over the lanes, neighbours to neighbours.
absl::Status SpreadRow(Sketch& sketch, const std::string& stage, size_t common, int64_t lanes) {
  const Nest& nest = sketch.Get(stage);
  const size_t axes = nest.stage.axes.size();
  if (axes <= common) return absl::OkStatus();
  std::vector<std::string> before, reduce;
  for (size_t i = 0; i < common; ++i) before.push_back(nest.loops[i].name);
  for (const schedule::Loop& loop : nest.loops) {
    if (loop.reduce) reduce.push_back(loop.name);
  }
  HONE_ASSIGN_OR_RETURN(const std::string row, FuseFrom(sketch, stage, common, axes));
  HONE_RETURN_IF_ERROR(sketch.Do(Split{row, lanes, Tail::kMask}));
  schedule::Reorder order{before};
  order.loops.push_back(row + "i");
  order.loops.push_back(row + "o");
  order.loops.insert(order.loops.end(), reduce.begin(), reduce.end());
  HONE_RETURN_IF_ERROR(sketch.Do(order));
  return sketch.Do(Annotate{row + "i", ir::LoopKind::kLane});
}

bool IsRows(const schedule::State& state, size_t common, int64_t shared_bytes) {
  if (state.outputs.size() != 1) return false;
  int64_t bytes = 0, longest = 0, rows = 1;
  for (size_t d = 0; d < common; ++d) rows *= state.outputs[0]->shape[d];
  for (const Nest& nest : state.nests) {
    if (nest.prepared) return false;
    if (nest.stage.reduction != ir::Reduction::kNone) longest = std::max(longest, ReduceSteps(nest.stage));
    int64_t elements = 1;
    for (size_t d = common; d < nest.stage.axes.size(); ++d) elements *= nest.stage.axes[d].extent;
    if (!state.IsOutput(nest.stage.buffer.get())) bytes += elements * ir::SizeOf(nest.stage.buffer->dtype);
  }
  if (longest < kLongReduction || 2 * bytes > shared_bytes) return false;
  // A reduction of its own kind per element is a lane's work, unless there are too few elements.
  const bool rows_have_elements = ir::NumElements(*state.outputs[0]) > rows || state.nests.size() > 2;
  return rows_have_elements || rows < kFewElements;
}

// Partial results of all lanes first; then, of two levels, a few lanes take them together, and the first lane what is
// left.
absl::Status SplitReductions(Sketch& sketch, size_t common, int64_t lanes, int64_t levels) {
  std::vector<std::string> stages;
  for (const Nest& nest : sketch.state.nests) {
    const bool per_row = nest.stage.axes.size() == common ||
                         std::all_of(nest.stage.axes.begin() + static_cast<std::ptrdiff_t>(common),
                                     nest.stage.axes.end(), [](const ir::Axis& a) { return a.extent == 1; });
    if (nest.stage.reduction != ir::Reduction::kNone && per_row) stages.push_back(nest.stage.buffer->name);
  }
  for (const std::string& stage : stages) {
    const ir::Stage& s = sketch.Get(stage).stage;
    const auto longest = std::ranges::max_element(
        s.reduce_axes, [](const ir::Axis& a, const ir::Axis& b) { return a.extent < b.extent; });
    if (longest->extent < 2) continue;
    const std::string axis = longest->name;
    const int64_t partials = std::min(lanes, longest->extent);
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Rfactor{stage, axis, partials, true}));
    if (levels == 2 && partials > kSecondLevel) {
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::Rfactor{stage, axis + "y", kSecondLevel, true}));
    }
  }
  return absl::OkStatus();
}

// Partial results in a launch of their own, where there are too few elements to keep the lanes busy.
absl::Status TakeApart(Sketch& sketch, const std::string& stage) {
  const ir::Stage& s = sketch.Get(stage).stage;
  if (ir::NumElements(*s.buffer) * kLongReduction > kFewElements || ReduceSteps(s) < kFewElements) {
    return absl::OkStatus();
  }
  const auto longest =
      std::ranges::max_element(s.reduce_axes, [](const ir::Axis& a, const ir::Axis& b) { return a.extent < b.extent; });
  const int64_t parts =
      std::min<int64_t>(sketch.chooser.OneOf(stage + ".parts", {64, 256, 1024}, 256), longest->extent);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Rfactor{stage, longest->name, parts, true}));
  const std::string partial = stage + "f";
  HONE_ASSIGN_OR_RETURN(const std::string all, FuseFrom(sketch, partial, 0, sketch.Get(partial).stage.axes.size()));
  HONE_RETURN_IF_ERROR(sketch.Do(Split{all, 64, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{all + "o", ir::LoopKind::kGroup}));
  return sketch.Do(Annotate{all + "i", ir::LoopKind::kLane});
}

}  // namespace

absl::StatusOr<bool> ScheduleLaneRows(Sketch& sketch) {
  if (sketch.state.outputs.size() != 1) return false;
  const size_t common = CommonAxes(sketch.state);
  if (common == 0 || !IsRows(sketch.state, common, sketch.target.memory.unasked_shared_bytes)) return false;
  const int64_t lanes = sketch.chooser.OneOf("rows.lanes", {8, 16, 32, 64, 128, 256}, 32);
  const std::string output = sketch.state.outputs[0]->name;
  if (sketch.Get(output).stage.reduction != ir::Reduction::kNone) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::CacheWrite{output}));
  }
  // Where waiting for each other is cheap, a lane alone must not take hundreds of partial results together.
  const bool barriers_are_cheap = sketch.target.memory.shared_gain > 1;
  const int64_t levels =
      lanes > kSecondLevel ? sketch.chooser.OneOf("rows.levels", {1, 2}, barriers_are_cheap ? 2 : 1) : 1;
  HONE_RETURN_IF_ERROR(SplitReductions(sketch, common, lanes, levels));
  std::vector<std::string> stages;
  for (const Nest& nest : sketch.state.nests) {
    const std::string& name = nest.stage.buffer->name;
    if (name != output) stages.push_back(name);
  }
  for (const std::string& stage : stages) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::StoreIn{stage, ir::Scope::kShared}));
  }
  // One group per row: the rows are the outermost loops of the output.
  for (size_t d = 0; d < common; ++d) {
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{sketch.Get(output).loops[d].name, ir::LoopKind::kGroup}));
  }
  const std::string group = sketch.Get(output).loops[common - 1].name;
  HONE_RETURN_IF_ERROR(SpreadRow(sketch, output, common, lanes));
  for (auto it = stages.rbegin(); it != stages.rend(); ++it) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{*it, group}));
    HONE_RETURN_IF_ERROR(SpreadRow(sketch, *it, common, lanes));
  }
  return true;
}

absl::Status ScheduleLaneReduction(Sketch& sketch, const std::string& reader, const std::string& stage) {
  HONE_RETURN_IF_ERROR(TakeApart(sketch, stage));
  const int64_t lanes = sketch.chooser.OneOf(reader + ".lanes", {32, 64, 128, 256}, 64);
  const size_t axes = sketch.Get(reader).stage.axes.size();
  if (axes == 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::string all, FuseFrom(sketch, reader, 0, axes));
  HONE_RETURN_IF_ERROR(sketch.Do(Split{all, lanes, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{all + "o", ir::LoopKind::kGroup}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{all + "i", ir::LoopKind::kLane}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{stage, all + "i"}));
  const ir::Stage s = sketch.Get(stage).stage;
  if (ReduceSteps(s) > kUnrolledWindow || sketch.chooser.OneOf(reader + ".unroll", {0, 1}, 1) == 0) {
    return absl::OkStatus();
  }
  for (const ir::Axis& axis : s.reduce_axes) {
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{axis.name, ir::LoopKind::kUnrolled}));
  }
  return absl::OkStatus();
}

absl::Status ScheduleLaneElementwise(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  if (s.axes.empty() || ir::NumElements(*s.buffer) <= 1) return absl::OkStatus();
  const int64_t lanes = sketch.chooser.OneOf(stage + ".lanes", {32, 64, 128, 256}, 64);
  std::vector<int64_t> widths = {1};
  for (const int64_t w : {2, 4, 8}) {
    if (s.axes.back().extent % w == 0) widths.push_back(w);
  }
  const int64_t width = sketch.chooser.OneOf(stage + ".width", widths, 4);
  if (width > 1) {
    HONE_RETURN_IF_ERROR(sketch.Do(Split{s.axes.back().name, width, Tail::kMask}));
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{s.axes.back().name + "i", ir::LoopKind::kVectorized}));
  }
  HONE_ASSIGN_OR_RETURN(const std::string all, FuseFrom(sketch, stage, 0, s.axes.size()));
  HONE_RETURN_IF_ERROR(sketch.Do(Split{all, lanes, Tail::kMask}));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{all + "o", ir::LoopKind::kGroup}));
  return sketch.Do(Annotate{all + "i", ir::LoopKind::kLane});
}

}  // namespace hone::space
