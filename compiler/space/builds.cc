// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/builds.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/space/conditions.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/elementwise.h"
#include "compiler/space/sketch/inline.h"
#include "compiler/space/sketch/lanes.h"
#include "compiler/space/sketch/lines.h"
#include "compiler/space/sketch/reduction.h"
#include "compiler/space/sketch/rows.h"
#include "compiler/space/sketch/shared_tile.h"
#include "compiler/space/sketch/tiling.h"
#include "compiler/space/sketch/widen.h"
#include "compiler/space/templates/attention_tile.h"
#include "compiler/space/templates/lane_tile.h"
#include "compiler/space/templates/quantized_tile.h"
#include "compiler/space/templates/register_tile.h"
#include "compiler/space/templates/tensor_tile.h"
#include "compiler/space/templates/winograd.h"

namespace hone::space {
namespace {

// Calls `schedule` for every reduction, with the reader that it can share loops with, or with a copy of its own.
using ScheduleReduction = absl::Status (*)(Sketch& sketch, const std::string& reader, const std::string& stage,
                                           const std::string& prefix);
absl::Status ScheduleReductions(Sketch& sketch, ScheduleReduction schedule) {
  std::vector<std::string> taken;
  for (const std::string& stage : StageNames(sketch.state, true)) {
    const std::string prefix = taken.empty() ? "" : stage + ".";
    HONE_ASSIGN_OR_RETURN(const SharedTile tile, FindOrMakeReader(sketch, stage, &taken));
    HONE_RETURN_IF_ERROR(schedule(sketch, tile.reader, tile.reduction, prefix));
  }
  return absl::OkStatus();
}

// Schedules the stages that no other rule has touched.
absl::Status ScheduleRest(Sketch& sketch, absl::Status (*schedule)(Sketch& sketch, const std::string& stage)) {
  for (const std::string& stage : StageNames(sketch.state, false)) {
    const schedule::Nest& nest = sketch.Get(stage);
    if (nest.IsTopLevel() && !nest.has_loop_steps && !nest.prepared) HONE_RETURN_IF_ERROR(schedule(sketch, stage));
  }
  return absl::OkStatus();
}

absl::Status RegisterTiles(Sketch& sketch, const std::string& reader, const std::string& stage,
                           const std::string& prefix) {
  return ScheduleRegisterTile(sketch, reader, stage, prefix);
}

// Products with weights of few bits become quantized tiles, other reductions register tiles.
absl::Status QuantizedTiles(Sketch& sketch, const std::string& reader, const std::string& stage,
                            const std::string& prefix) {
  const bool fits = FitsQuantizedTile(sketch.state, sketch.Get(stage).stage);
  return (fits ? ScheduleQuantizedTile : RegisterTiles)(sketch, reader, stage, prefix);
}

// Calls `transformed` for convolutions that can be computed from transformed tiles, and `plain` for other reductions.
using TileRule = absl::Status (*)(Sketch& sketch, const std::string& reader, const std::string& stage,
                                  const std::string& prefix);
absl::Status ScheduleWinograd(Sketch& sketch, TileRule transformed, TileRule plain) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_RETURN_IF_ERROR(WidenConvolutions(sketch));
  HONE_RETURN_IF_ERROR(WidenBroadcasts(sketch));
  std::vector<std::string> taken;
  for (const std::string& stage : StageNames(sketch.state, true)) {
    const std::string prefix = taken.empty() ? "" : stage + ".";
    if (!FitsWinograd(sketch.state, sketch.Get(stage).stage)) {
      HONE_ASSIGN_OR_RETURN(const SharedTile tile, FindOrMakeReader(sketch, stage, &taken));
      HONE_RETURN_IF_ERROR(plain(sketch, tile.reader, tile.reduction, prefix));
      continue;
    }
    const std::string reader = TileReader(sketch.state, sketch.Get(stage), taken);
    taken.push_back(reader.empty() ? stage : reader);
    HONE_RETURN_IF_ERROR(transformed(sketch, taken.back(), stage, prefix));
  }
  return absl::OkStatus();
}

// Computes maxima of windows on integers in the same order, if the target has no instruction for a maximum of floats.
// Only windows are worth it: they share loads, so that each float is converted once.
absl::Status ComputeMaximaAsIntegers(Sketch& sketch) {
  if (sketch.target.has_maximum) return absl::OkStatus();
  for (const std::string& stage : StageNames(sketch.state, true)) {
    const ir::Stage& s = sketch.Get(stage).stage;
    if (s.reduction != ir::Reduction::kMax || s.buffer->dtype != ir::DType::kFloat32 || !HasWindow(s)) continue;
    if (sketch.chooser.OneOf(stage + ".order", {0, 1}, 1) == 0) continue;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::TotalOrder{stage}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SchedulePreparedStages(Sketch& sketch) {
  for (const schedule::Step& step : execution::ModelOf(sketch.target).prepared_schedule(sketch.state, sketch.target)) {
    HONE_RETURN_IF_ERROR(sketch.Do(step));
  }
  return absl::OkStatus();
}

absl::Status BuildRegisterTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_RETURN_IF_ERROR(WidenBroadcasts(sketch));
  HONE_RETURN_IF_ERROR(ScheduleReductions(sketch, RegisterTiles));
  return ScheduleRest(sketch, ScheduleElementwise);
}

absl::Status BuildQuantizedTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_RETURN_IF_ERROR(ScheduleReductions(sketch, QuantizedTiles));
  return ScheduleRest(sketch, ScheduleElementwise);
}

absl::Status BuildWinogradTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(ScheduleWinograd(sketch, ScheduleWinogradTile, RegisterTiles));
  return ScheduleRest(sketch, ScheduleElementwise);
}

absl::Status BuildAttentionTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  return ScheduleAttentionTile(sketch);
}

absl::Status BuildSketch(const ir::Workload& workload, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_ASSIGN_OR_RETURN(const bool lines, ScheduleLines(sketch));
  if (lines) {
    HONE_RETURN_IF_ERROR(ScheduleReductions(sketch, ScheduleTiles));
    return ScheduleRest(sketch, ScheduleElementwise);
  }
  HONE_RETURN_IF_ERROR(ComputeMaximaAsIntegers(sketch));
  HONE_ASSIGN_OR_RETURN(const bool split, SplitLongReductions(sketch));
  if (!split && !HasContraction(workload)) {
    HONE_ASSIGN_OR_RETURN(const bool rows, ScheduleRows(sketch));
    if (rows) return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(ScheduleReductions(sketch, ScheduleTiles));
  return ScheduleRest(sketch, ScheduleElementwise);
}

absl::Status BuildLaneTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_RETURN_IF_ERROR(ScheduleReductions(sketch, ScheduleLaneTile));
  HONE_RETURN_IF_ERROR(InlinePadding(sketch));  // padding that no tile computes in shared memory
  HONE_RETURN_IF_ERROR(ScheduleRest(sketch, ScheduleLaneElementwise));
  return SchedulePreparedStages(sketch);
}

absl::Status BuildWinogradLanes(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(ScheduleWinograd(sketch, ScheduleWinogradLanes, ScheduleLaneTile));
  HONE_RETURN_IF_ERROR(ScheduleRest(sketch, ScheduleLaneElementwise));
  return SchedulePreparedStages(sketch);
}

absl::Status BuildLanes(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_ASSIGN_OR_RETURN(const bool rows, ScheduleLaneRows(sketch));
  if (!rows) {
    HONE_RETURN_IF_ERROR(InlineRepeated(sketch));
    HONE_RETURN_IF_ERROR(InlinePadding(sketch));
    HONE_RETURN_IF_ERROR(
        ScheduleReductions(sketch, [](Sketch& s, const std::string& reader, const std::string& stage,
                                      const std::string&) { return ScheduleLaneReduction(s, reader, stage); }));
    HONE_RETURN_IF_ERROR(ScheduleRest(sketch, ScheduleLaneElementwise));
  }
  return SchedulePreparedStages(sketch);
}

// Tensor instructions compute the sums of products. All other stages stay as they are.
absl::Status BuildTensorTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  std::vector<TensorUse> uses;
  for (const std::string& stage : StageNames(sketch.state, true)) {
    HONE_ASSIGN_OR_RETURN(const std::optional<TensorUse> use, PrepareTensorProduct(sketch, stage));
    if (use.has_value()) uses.push_back(*use);
  }
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  std::vector<std::string> taken;
  for (TensorUse& use : uses) {
    const std::string prefix = taken.empty() ? "" : use.stage + ".";
    HONE_ASSIGN_OR_RETURN(const SharedTile tile, FindOrMakeReader(sketch, use.stage, &taken));
    if (tile.reduction != use.stage) use.k += "c";  // the axes of a copy by CacheWrite end with "c"
    HONE_RETURN_IF_ERROR(ScheduleRegisterTile(sketch, tile.reader, tile.reduction, prefix, use));
  }
  return ScheduleRest(sketch, ScheduleElementwise);
}

}  // namespace hone::space
