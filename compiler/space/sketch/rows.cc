#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

using schedule::Nest;

constexpr int64_t kSerialElements = 8192;
constexpr int64_t kMaxRowBytes = 256 << 10;

// How many leading axes all stages share: axis d of every load of a stage is the reader's own axis d.
size_t CommonAxes(const schedule::State& state) {
  size_t common = state.outputs[0]->shape.size();
  for (const Nest& nest : state.nests) {
    common = std::min(common, nest.stage.axes.size());
    for (const ir::Load& load : LoadsOf(nest.stage)) {
      if (state.FindNest(load.buffer.get()) == nullptr) continue;
      size_t same = 0;
      while (same < load.indices.size() && same < nest.stage.axes.size()) {
        const ir::Var* v = load.indices[same].As<ir::Var>();
        const bool unit = nest.stage.axes[same].extent == 1 && load.buffer->shape[same] == 1;
        if (!unit && (v == nullptr || v->name != nest.stage.axes[same].name)) break;
        if (load.buffer->shape[same] != nest.stage.axes[same].extent) break;
        ++same;
      }
      common = std::min(common, same);
    }
  }
  return common;
}

// The loops of a stage inside a row: the last axis in vectors.
absl::Status VectorizeLast(Sketch& sketch, const std::string& stage, size_t common) {
  const Nest& nest = sketch.Get(stage);
  const ir::Stage& s = nest.stage;
  if (s.axes.size() <= common) return absl::OkStatus();
  const ir::Axis axis = s.axes.back();
  const int64_t lanes =
      std::min<int64_t>(sketch.target.Lanes(std::max(4, ir::SizeOf(s.buffer->dtype))), PowerOfTwo(axis.extent));
  if (lanes <= 1) return absl::OkStatus();
  std::vector<std::string> reduce;
  for (const ir::Axis& r : s.reduce_axes) reduce.push_back(r.name);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Split{axis.name, lanes, TailOf(axis.extent, lanes)}));
  if (!reduce.empty()) {
    // Partial results stay in registers: reduction loops outside, all lanes unrolled inside.
    schedule::Reorder order{std::move(reduce)};
    order.loops.push_back(axis.name + "o");
    order.loops.push_back(axis.name + "i");
    HONE_RETURN_IF_ERROR(sketch.Do(std::move(order)));
    if ((axis.extent + lanes - 1) / lanes <= 8) {
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{axis.name + "o", ir::LoopKind::kUnrolled}));
    }
  }
  return sketch.Do(schedule::Annotate{axis.name + "i", ir::LoopKind::kVectorized});
}

bool IsRows(const schedule::State& state, size_t common) {
  if (state.outputs.size() != 1 || common == 0) return false;
  int reductions = 0;
  int64_t row_bytes = 0;
  for (const Nest& nest : state.nests) {
    if (nest.prepared) return false;
    reductions += nest.stage.reduction != ir::Reduction::kNone ? 1 : 0;
    int64_t elements = 1;
    for (size_t d = common; d < nest.stage.axes.size(); ++d) elements *= nest.stage.axes[d].extent;
    if (!state.IsOutput(nest.stage.buffer.get())) row_bytes += elements * ir::SizeOf(nest.stage.buffer->dtype);
  }
  return reductions >= 1 && state.nests.size() >= 2 && row_bytes <= kMaxRowBytes;
}

}  // namespace

absl::StatusOr<bool> ScheduleRows(Sketch& sketch) {
  // Only where some reduction runs over what is left of a row: a matrix multiply has its own template.
  int reductions = 0;
  for (const Nest& nest : sketch.state.nests) reductions += nest.stage.reduction != ir::Reduction::kNone ? 1 : 0;
  const size_t common = CommonAxes(sketch.state);
  if (!IsRows(sketch.state, common) || (reductions < 2 && sketch.state.outputs[0]->shape.size() == common))
    return false;
  const std::string output = sketch.state.outputs[0]->name;
  if (sketch.Get(output).stage.reduction != ir::Reduction::kNone)
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::CacheWrite{output}));
  std::vector<std::string> stages;
  for (const Nest& nest : sketch.state.nests) stages.push_back(nest.stage.buffer->name);
  for (const std::string& stage : stages) {
    if (sketch.Get(stage).stage.reduction != ir::Reduction::kNone)
      HONE_RETURN_IF_ERROR(ScheduleLaneReduction(sketch, stage).status());
  }
  const ir::Stage out = sketch.Get(output).stage;
  std::string row = out.axes[0].name;
  int64_t rows = out.axes[0].extent;
  for (size_t d = 1; d < common; ++d) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Fuse{row, out.axes[d].name}));
    row += "_" + out.axes[d].name;
    rows *= out.axes[d].extent;
  }
  const bool small = ir::NumElements(*out.buffer) < kSerialElements || sketch.target.threads == 1;
  const int64_t chunks =
      sketch.chooser.OneOf("rows.chunks", {1, 2, 4, 8, 16, 32}, small ? 1 : 4 * PowerOfTwo(sketch.target.threads) / 2);
  HONE_RETURN_IF_ERROR(
      sketch.Do(schedule::Split{row, std::max<int64_t>(1, (rows + chunks - 1) / chunks), schedule::Tail::kShift}));
  if (chunks > 1) HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{row + "o", ir::LoopKind::kParallel}));
  HONE_RETURN_IF_ERROR(VectorizeLast(sketch, output, common));
  stages.clear();
  for (const Nest& nest : sketch.state.nests) stages.push_back(nest.stage.buffer->name);
  for (auto it = stages.rbegin(); it != stages.rend(); ++it) {
    if (*it == output) continue;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{*it, row + "i"}));
    HONE_RETURN_IF_ERROR(VectorizeLast(sketch, *it, common));
  }
  return true;
}

}  // namespace hone::space
