// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/templates/lane_tile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Tail;

absl::Status AnnotateAll(Sketch& sketch, const std::vector<std::string>& loops, ir::LoopKind kind) {
  for (const std::string& loop : loops) HONE_RETURN_IF_ERROR(sketch.Do(Annotate{loop, kind}));
  return absl::OkStatus();
}

void Append(std::vector<std::string>* loops, const std::vector<std::string>& more) {
  loops->insert(loops->end(), more.begin(), more.end());
}

ir::LoopKind VectorKind(int64_t width) { return width > 1 ? ir::LoopKind::kVectorized : ir::LoopKind::kUnrolled; }

// An axis of the sums in a lane's tile: the loop over stripes, and the loop inside one. Both are the same loop if the
// axis has no stripes.
struct SumsAxis {
  std::string stripes, inside;
};

// The loops of the output while they are made, and the axes of the sums.
struct OutputNest {
  std::vector<std::string> groups, lanes, inner;  // inner: of a lane's tile, the last one over a vector
  std::string row_groups;                         // the loop over groups along the rows; empty: there are no rows
  SumsAxis second, row, vector;
};

// One axis of the tile: its position among the output's axes, the lanes along it, the elements of a lane, and how many
// of these are adjacent.
struct TiledAxis {
  int axis;
  int64_t lanes, size, together;
};

// Splits an axis of the output into groups, lanes and the elements of a lane, which are adjacent. Adds the loops to
// *nest.
absl::StatusOr<SumsAxis> TileAxis(const std::string& name, const std::string& sums, const TiledAxis& tile,
                                  Sketch& sketch, OutputNest* nest) {
  HONE_ASSIGN_OR_RETURN(const SplitLoops group, sketch.Split(name, tile.lanes * tile.size, Tail::kMask));
  HONE_ASSIGN_OR_RETURN(const SplitLoops lane, sketch.Split(group.inner, tile.size, Tail::kMask));
  nest->groups.push_back(group.outer);
  nest->lanes.push_back(lane.outer);
  nest->inner.push_back(lane.inner);
  return SumsAxis{sums, sums};
}

// As TileAxis, but a lane's elements are in stripes: runs of `together` adjacent elements that repeat every lanes *
// together elements. Therefore lanes that load at the same time read adjacent elements, in different banks of shared
// memory.
absl::StatusOr<SumsAxis> TileInStripes(const std::string& stage, const std::string& name, const std::string& sums,
                                       const TiledAxis& tile, Sketch& sketch, OutputNest* nest) {
  HONE_ASSIGN_OR_RETURN(const SplitAxes axes, sketch.SplitAxis(stage, sums, tile.lanes * tile.together));
  HONE_ASSIGN_OR_RETURN(const SplitLoops group, sketch.Split(name, tile.lanes * tile.size, Tail::kMask));
  HONE_ASSIGN_OR_RETURN(const SplitLoops stripe, sketch.Split(group.inner, tile.lanes * tile.together, Tail::kMask));
  nest->groups.push_back(group.outer);
  nest->inner.push_back(stripe.outer);
  nest->lanes.push_back(stripe.inner);
  if (tile.together > 1) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops lane, sketch.Split(stripe.inner, tile.together, Tail::kMask));
    nest->lanes.back() = lane.outer;
    nest->inner.push_back(lane.inner);
  }
  return SumsAxis{axes.groups, axes.place};
}

// As TileAxis, for rows in blocks of eight (kBlockRows). Each warp has two consecutive blocks, a pair, and has further
// pairs if a lane has more than two rows. The stripes are the two blocks of a pair.
absl::StatusOr<SumsAxis> TileInBlocks(const std::string& stage, const std::string& name, const std::string& sums,
                                      const TiledAxis& tile, Sketch& sketch, OutputNest* nest) {
  const int64_t pair = 2 * ir::kBlockRows, rows = tile.lanes * 2;  // pair: rows of a warp; rows: one pair of every warp
  HONE_ASSIGN_OR_RETURN(const SplitAxes blocks, sketch.SplitAxis(stage, sums, ir::kBlockRows));
  HONE_ASSIGN_OR_RETURN(const SplitAxes pairs, sketch.SplitAxis(stage, blocks.groups, rows / ir::kBlockRows));
  HONE_ASSIGN_OR_RETURN(const SplitLoops group, sketch.Split(name, tile.lanes * tile.size, Tail::kMask));
  HONE_ASSIGN_OR_RETURN(const SplitLoops once, sketch.Split(group.inner, rows, Tail::kMask));
  HONE_ASSIGN_OR_RETURN(const SplitLoops warp, sketch.Split(once.inner, pair, Tail::kMask));
  HONE_ASSIGN_OR_RETURN(const SplitLoops block, sketch.Split(warp.inner, ir::kBlockRows, Tail::kMask));
  nest->groups.push_back(group.outer);
  Append(&nest->lanes, {warp.outer, block.inner});
  Append(&nest->inner, {once.outer, block.outer});
  return SumsAxis{pairs.place, blocks.place};
}

// Reorders the loops over lanes (second axis, rows, columns) so that the lanes of one instruction come last: four along
// the columns and eight along the rows. Consecutive lanes are then one warp.
absl::Status GatherWarps(const LaneTilePlan& plan, Sketch& sketch, std::vector<std::string>* lanes) {
  const LaneShape& shape = plan.shape;
  const int64_t rows = std::min(shape.lanes_y, ir::kBlockRows), others = ir::kBlockRows / rows;
  std::vector<int64_t> together = {rows, ir::kLanesOfRow}, all = {shape.lanes_y, shape.lanes_x};
  if (plan.second_axis >= 0) {
    together.insert(together.begin(), others);
    all.insert(all.begin(), shape.lanes_z);
  }
  std::vector<std::string> warps, inside;
  for (size_t i = 0; i < lanes->size(); ++i) {
    inside.push_back((*lanes)[i]);
    if (all[i] <= together[i]) continue;
    HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch.Split((*lanes)[i], together[i], Tail::kMask));
    warps.push_back(split.outer);
    inside.back() = split.inner;
  }
  *lanes = std::move(warps);
  Append(lanes, inside);
  return absl::OkStatus();
}

absl::StatusOr<OutputNest> SplitOutput(const LaneTilePlan& plan, Sketch& sketch) {
  OutputNest nest;
  const std::vector<ir::Axis> axes = sketch.Get(plan.tile_reader).stage.axes;
  const std::vector<ir::Axis> sums = sketch.Get(plan.tile_stage).stage.axes;
  for (int d = 0; d < static_cast<int>(axes.size()); ++d) {
    const bool tiled = d == plan.vector_axis || d == plan.row_axis || d == plan.second_axis;
    if (!tiled) nest.groups.push_back(axes[static_cast<size_t>(d)].name);
  }
  const LaneShape& shape = plan.shape;
  const std::pair<TiledAxis, SumsAxis*> tiles[] = {
      {{plan.second_axis, shape.lanes_z, shape.more_rows, 1}, &nest.second},
      {{plan.row_axis, shape.lanes_y, shape.rows, 1}, &nest.row},
      {{plan.vector_axis, shape.lanes_x, shape.width, VectorElements(plan, sketch.target)}, &nest.vector}};
  for (const auto& [tile, made] : tiles) {
    if (tile.axis < 0) continue;
    const std::string& name = axes[static_cast<size_t>(tile.axis)].name;
    const std::string& sum = sums[static_cast<size_t>(tile.axis)].name;
    const bool in_blocks = plan.ReadsSharedMemory() && tile.axis == plan.row_axis;
    const bool in_stripes = plan.striped && tile.lanes > 1 && tile.size > tile.together;
    HONE_ASSIGN_OR_RETURN(*made, in_blocks    ? TileInBlocks(plan.tile_stage, name, sum, tile, sketch, &nest)
                                 : in_stripes ? TileInStripes(plan.tile_stage, name, sum, tile, sketch, &nest)
                                              : TileAxis(name, sum, tile, sketch, &nest));
    if (tile.axis == plan.row_axis) nest.row_groups = nest.groups.back();
  }
  return nest;
}

absl::StatusOr<OutputNest> ApplyOutput(const LaneTilePlan& plan, Sketch& sketch) {
  HONE_ASSIGN_OR_RETURN(OutputNest nest, SplitOutput(plan, sketch));
  const bool in_warps = plan.instruction.has_value() && !plan.ReadsSharedMemory();
  if (in_warps) HONE_RETURN_IF_ERROR(GatherWarps(plan, sketch, &nest.lanes));
  if (plan.sharing > 1) {  // groups that share copies must be consecutive
    const auto rows = std::ranges::find(nest.groups, nest.row_groups);
    std::rotate(rows, rows + 1, nest.groups.end());
  }
  std::vector<std::string> order = nest.groups;
  Append(&order, nest.lanes);
  Append(&order, nest.inner);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Reorder{order}));
  HONE_RETURN_IF_ERROR(AnnotateAll(sketch, nest.groups, ir::LoopKind::kGroup));
  HONE_RETURN_IF_ERROR(AnnotateAll(sketch, nest.lanes, ir::LoopKind::kLane));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{nest.inner.back(), VectorKind(plan.shape.width)}));
  HONE_RETURN_IF_ERROR(AnnotateAll(sketch, {nest.inner.begin(), nest.inner.end() - 1}, ir::LoopKind::kUnrolled));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{plan.tile_stage, nest.lanes.back()}));
  return nest;
}

absl::Status PlaceShared(const LaneTilePlan& plan, const std::string& loop, Sketch& sketch) {
  for (const SharedStage& shared : plan.shared) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{shared.stage, loop}));
  }
  return absl::OkStatus();
}

// Splits and orders the loops of a reduction by scalar code. The last plan.unrolled steps are unrolled, and their
// operands are adjacent. Returns the loop over staged steps.
absl::StatusOr<std::string> ApplyReduction(const LaneTilePlan& plan, const OutputNest& nest, Sketch& sketch) {
  const std::vector<ir::Axis> axes = sketch.Get(plan.tile_stage).stage.axes;
  HONE_ASSIGN_OR_RETURN(const SplitLoops steps, sketch.Split(plan.step_axis, plan.step, Tail::kMask));
  std::vector<std::string> order = {steps.outer};
  Append(&order, plan.window_axes);
  if (plan.unrolled > 1 && plan.unrolled < plan.step) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops part, sketch.Split(steps.inner, plan.unrolled, Tail::kMask));
    Append(&order, {part.outer, part.inner});
  } else {
    order.push_back(steps.inner);
  }
  const std::string innermost_step = order.back();
  for (const ir::Axis& axis : axes) order.push_back(axis.name);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Reorder{order}));
  HONE_RETURN_IF_ERROR(PlaceShared(plan, steps.outer, sketch));
  for (const ir::Axis& axis : axes) {
    const ir::LoopKind kind = axis.name == nest.vector.inside ? VectorKind(plan.shape.width) : ir::LoopKind::kUnrolled;
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{axis.name, kind}));
  }
  if (plan.unrolled > 1) HONE_RETURN_IF_ERROR(sketch.Do(Annotate{innermost_step, ir::LoopKind::kUnrolled}));
  return steps.outer;
}

// Splits and orders the loops of a reduction by the instruction. It is innermost: two rows, adjacent columns, and its
// steps. Returns the loop over staged steps.
absl::StatusOr<std::string> ApplyInstruction(const LaneTilePlan& plan, const OutputNest& nest, Sketch& sketch) {
  const ir::TensorInstructionEntry& entry = ir::EntryOf(*plan.instruction);
  const std::vector<ir::Axis> axes = sketch.Get(plan.tile_stage).stage.axes;
  HONE_ASSIGN_OR_RETURN(const SplitLoops steps, sketch.Split(plan.step_axis, plan.step, Tail::kMask));
  std::string step = steps.inner;
  std::vector<std::string> order = {steps.outer}, unrolled;
  Append(&order, plan.window_axes);
  if (plan.step > entry.k) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops together, sketch.Split(step, entry.k, Tail::kMask));
    order.push_back(together.outer);
    if (plan.unrolled > 1) unrolled.push_back(together.outer);
    step = together.inner;
  }
  const bool pairs_of_rows = plan.ReadsSharedMemory() || plan.shape.rows % 2 == 0;
  const std::string& rows = pairs_of_rows ? nest.row.stripes : nest.second.stripes;
  HONE_ASSIGN_OR_RETURN(const SplitLoops pair, sketch.Split(rows, 2, Tail::kMask));
  for (const ir::Axis& axis : axes) {
    if (axis.name == nest.vector.inside) continue;
    unrolled.push_back(axis.name == rows ? pair.outer : axis.name);
    order.push_back(unrolled.back());
  }
  Append(&order, {pair.inner, nest.vector.inside});
  if (plan.ReadsSharedMemory()) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops chunk, sketch.Split(step, entry.chunk, Tail::kMask));
    order.push_back(chunk.outer);
    step = chunk.inner;
  }
  order.push_back(step);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Reorder{order}));
  HONE_RETURN_IF_ERROR(PlaceShared(plan, steps.outer, sketch));
  HONE_RETURN_IF_ERROR(AnnotateAll(sketch, unrolled, ir::LoopKind::kUnrolled));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Tensorize{plan.tile_stage, *plan.instruction}));
  return steps.outer;
}

}  // namespace

int64_t VectorElements(const LaneTilePlan& plan, const target::Target& target) {
  return std::min(plan.shape.width,
                  plan.instruction.has_value() ? ir::EntryOf(*plan.instruction).n : target.VectorWidth(4));
}

absl::StatusOr<TileStages> ApplyParts(const LaneTilePlan& plan, Sketch& sketch) {
  if (plan.parts == 1) return TileStages{plan.reader, plan.stage};
  HONE_ASSIGN_OR_RETURN(const Partials partials,
                        sketch.Rfactor({plan.stage, plan.parts_axis, plan.part_steps, false, true}));
  HONE_ASSIGN_OR_RETURN(const std::string sums, sketch.CacheWrite(partials.stage));
  return TileStages{partials.stage, sums};
}

absl::StatusOr<std::string> ApplyShared(const SharedStage& shared, const std::string& stage, Sketch& sketch) {
  std::string name = shared.stage;
  if (!shared.copy_of.empty()) {
    HONE_ASSIGN_OR_RETURN(name, sketch.CacheRead(shared.copy_of, stage));
  }
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::StoreIn{name, shared.scope, shared.pad, shared.row_dims}));
  return name;
}

absl::StatusOr<std::string> ApplyLoops(const LaneTilePlan& plan, Sketch& sketch) {
  HONE_ASSIGN_OR_RETURN(const OutputNest nest, ApplyOutput(plan, sketch));
  return plan.instruction.has_value() ? ApplyInstruction(plan, nest, sketch) : ApplyReduction(plan, nest, sketch);
}

absl::Status Apply(const LaneTilePlan& plan, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(ApplyParts(plan, sketch).status());
  HONE_RETURN_IF_ERROR(sketch.DoAll(plan.layout));
  for (const SharedStage& shared : plan.shared) {
    HONE_RETURN_IF_ERROR(ApplyShared(shared, plan.tile_stage, sketch).status());
  }
  HONE_ASSIGN_OR_RETURN(const std::string steps, ApplyLoops(plan, sketch));
  for (const SharedStage& shared : plan.shared) HONE_RETURN_IF_ERROR(sketch.DoAll(shared.fill));
  if (plan.pipelined) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Pipeline{steps, plan.buffers, plan.overlaps_instructions ? 1 : 0}));
  }
  return sketch.DoAll(plan.total);
}

std::string Print(const LaneTilePlan& plan) {
  std::vector<std::string> shared;
  for (const SharedStage& s : plan.shared) shared.push_back(fmt::format("{} (pad {})", s.stage, s.pad));
  const LaneShape& shape = plan.shape;
  return fmt::format(
      "{} in tiles of {}, {} parts: {} columns of {} lanes (axis {}), {} rows of {} lanes (axis {}), {} rows of {} "
      "lanes (axis {}){}; instruction {}, {} groups share; steps of {} along {}, {} unrolled; shared: {}; {} buffers{}",
      plan.tile_stage, plan.tile_reader, plan.parts, shape.width, shape.lanes_x, plan.vector_axis, shape.rows,
      shape.lanes_y, plan.row_axis, shape.more_rows, shape.lanes_z, plan.second_axis,
      plan.striped ? ", in stripes" : "", plan.instruction.has_value() ? ir::EntryOf(*plan.instruction).name : "none",
      plan.sharing, plan.step, plan.step_axis, plan.unrolled, fmt::join(shared, ", "), plan.buffers,
      plan.pipelined ? ", pipelined" : "");
}

absl::Status ScheduleLaneTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                              const std::string& prefix) {
  HONE_ASSIGN_OR_RETURN(const std::optional<LaneTilePlan> plan,
                        ChooseLaneTile(sketch.state, sketch.target, sketch.chooser, {reader, stage, prefix}));
  return plan.has_value() ? Apply(*plan, sketch) : absl::OkStatus();
}

}  // namespace hone::space
