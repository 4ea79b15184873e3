// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/templates/register_tile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/templates/tensor_tile.h"

namespace hone::space {
namespace {

using schedule::Annotate;
using schedule::Tail;

absl::Status AnnotateAll(Sketch& sketch, const std::vector<std::string>& loops, ir::LoopKind kind) {
  for (const std::string& loop : loops) HONE_RETURN_IF_ERROR(sketch.Do(Annotate{loop, kind}));
  return absl::OkStatus();
}

// The loops of the output while they are split, outermost first.
struct OutputNest {
  std::vector<std::string> batch;  // the axes outside the tile
  std::string panel, block;        // the loops over panels and over blocks; block is empty if there is none
  std::vector<std::string> tiles;  // loops over the tiles of a block
  std::vector<std::string> inner;  // loops of one tile; the last is over the elements of a vector
};

// Loops over panels, over the vectors of a row of a panel, and over the elements of a vector.
struct Panels {
  std::string panel, vector, element;
};

// An open number of whole vectors has panels with fewer vectors at its end. Otherwise conditions leave out what lies
// past the end.
absl::StatusOr<Panels> SplitPanels(const RegisterTilePlan& plan, const std::string& loop, Sketch& sketch) {
  if (plan.tail == Tail::kPeel && plan.vectors > 1 && sketch.HasMultiple(loop, plan.width)) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops vectors, sketch.Split(loop, plan.width, Tail::kMask));
    HONE_ASSIGN_OR_RETURN(const SplitLoops panel, sketch.SplitFitted(vectors.outer, plan.vectors));
    return Panels{panel.outer, panel.inner, vectors.inner};
  }
  HONE_ASSIGN_OR_RETURN(const SplitLoops panel, sketch.Split(loop, plan.columns(), plan.tail));
  HONE_ASSIGN_OR_RETURN(const SplitLoops vectors, sketch.Split(panel.inner, plan.width, Tail::kMask));
  return Panels{panel.outer, vectors.outer, vectors.inner};
}

absl::StatusOr<OutputNest> SplitOutput(const RegisterTilePlan& plan, Sketch& sketch) {
  OutputNest nest;
  const std::vector<ir::Axis> axes = sketch.Get(plan.reader).stage.axes;
  for (int d = 0; d < static_cast<int>(axes.size()); ++d) {
    const bool tiled = d == plan.vector_axis || d == plan.row_axis || d == plan.plane_axis;
    if (!tiled) nest.batch.push_back(axes[static_cast<size_t>(d)].name);
  }
  const std::string& vector = axes[static_cast<size_t>(plan.vector_axis)].name;
  HONE_ASSIGN_OR_RETURN(const Panels panels, SplitPanels(plan, vector, sketch));
  nest.panel = panels.panel;
  const std::pair<int, int64_t> rows[] = {{plan.plane_axis, plan.planes}, {plan.row_axis, plan.rows}};
  for (const auto& [axis, size] : rows) {
    if (axis < 0) continue;
    HONE_ASSIGN_OR_RETURN(const SplitLoops tile, sketch.SplitFitted(axes[static_cast<size_t>(axis)].name, size));
    nest.tiles.push_back(tile.outer);
    nest.inner.push_back(tile.inner);
  }
  nest.inner.insert(nest.inner.end(), {panels.vector, panels.element});
  if (plan.block == 0) return nest;
  // If an open size decides how many tiles there are, the last block has fewer.
  const bool open = sketch.IsOpen(nest.tiles.front());
  size_t position = 0;
  const schedule::Nest* tiles = sketch.state.FindLoop(nest.tiles.front(), &position);
  const int64_t count = tiles->loops[position].max_extent;
  // Fitted tiles may be one more than full ones. A block of all full tiles takes it, too: with a second block, the loop
  // over panels would divide by an open number.
  const int64_t size = open && plan.block + 1 == count ? count : plan.block;
  HONE_ASSIGN_OR_RETURN(const SplitLoops block,
                        sketch.Split(nest.tiles.front(), size, open ? Tail::kPeel : Tail::kShift));
  nest.block = block.outer;
  nest.tiles.front() = block.inner;
  return nest;
}

// Fuses the loops around a panel's tiles into one, which threads may share.
absl::Status ShareOutput(const RegisterTilePlan& plan, const OutputNest& nest, Sketch& sketch, OutputLoops* loops) {
  std::vector<std::string> shared = nest.batch;
  if (!plan.rows_outside) shared.push_back(nest.panel);
  if (!nest.block.empty()) shared.push_back(nest.block);
  std::string fused = nest.panel;
  if (!shared.empty()) {
    const bool holds_tile = std::ranges::find(shared, loops->tile) != shared.end();
    HONE_ASSIGN_OR_RETURN(fused, sketch.FuseAll(shared));
    if (holds_tile) loops->tile = fused;
  }
  if (!nest.block.empty()) loops->block = fused;
  if (!plan.rows_outside) loops->panel = fused;
  return plan.parallel ? sketch.Do(Annotate{fused, ir::LoopKind::kParallel}) : absl::OkStatus();
}

// The loops of the reduction, outermost first, after the unrolled ones are annotated.
struct ReductionLoops {
  std::vector<std::string> outer;
  std::string steps;  // the innermost loop, over the steps of an instruction; empty without one
};

// Splits off the steps that one instruction takes as a loop of their own.
absl::StatusOr<ReductionLoops> SplitSteps(const RegisterTilePlan& plan, Sketch& sketch) {
  ReductionLoops loops{plan.reduce_order, plan.reduce_order.back()};
  loops.outer.pop_back();
  if (!plan.splits_steps) return loops;
  HONE_ASSIGN_OR_RETURN(const SplitLoops steps,
                        sketch.Split(loops.steps, ir::EntryOf(plan.use->instruction).k, Tail::kMask));
  loops.steps = steps.inner;
  if (plan.unrolling != Unrolling::kPart) {
    loops.outer.push_back(steps.outer);
    return loops;
  }
  HONE_ASSIGN_OR_RETURN(const SplitLoops part, sketch.Split(steps.outer, plan.unrolled, Tail::kMask));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{part.inner, ir::LoopKind::kUnrolled}));
  loops.outer.insert(loops.outer.end(), {part.outer, part.inner});
  return loops;
}

absl::StatusOr<ReductionLoops> UnrollReduction(const RegisterTilePlan& plan, Sketch& sketch) {
  ReductionLoops loops{plan.reduce_order, ""};
  if (plan.unrolling == Unrolling::kWhole) {
    HONE_RETURN_IF_ERROR(AnnotateAll(sketch, loops.outer, ir::LoopKind::kUnrolled));
  } else if (plan.unrolling == Unrolling::kInnermost) {
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{loops.outer.back(), ir::LoopKind::kUnrolled}));
  } else if (plan.unrolling == Unrolling::kPart) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops part, sketch.Split(loops.outer.back(), plan.unrolled, Tail::kMask));
    HONE_RETURN_IF_ERROR(sketch.Do(Annotate{part.inner, ir::LoopKind::kUnrolled}));
    loops.outer.back() = part.outer;
    loops.outer.push_back(part.inner);
  }
  return loops;
}

}  // namespace

absl::StatusOr<OutputLoops> ApplyOutput(const RegisterTilePlan& plan, Sketch& sketch) {
  HONE_ASSIGN_OR_RETURN(const OutputNest nest, SplitOutput(plan, sketch));
  std::vector<std::string> order = nest.batch;
  if (!plan.rows_outside) order.push_back(nest.panel);
  if (!nest.block.empty()) order.push_back(nest.block);
  if (plan.rows_outside) order.push_back(nest.panel);
  order.insert(order.end(), nest.tiles.begin(), nest.tiles.end());
  OutputLoops loops{order.back(), "", nest.panel};
  order.insert(order.end(), nest.inner.begin(), nest.inner.end());
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Reorder{order}));
  HONE_RETURN_IF_ERROR(AnnotateAll(sketch, {nest.inner.begin(), nest.inner.end() - 1}, ir::LoopKind::kUnrolled));
  HONE_RETURN_IF_ERROR(sketch.Do(Annotate{nest.inner.back(), ir::LoopKind::kVectorized}));
  if (!plan.nested) HONE_RETURN_IF_ERROR(ShareOutput(plan, nest, sketch, &loops));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{plan.stage, loops.tile}));
  return loops;
}

absl::Status ApplyReduction(const RegisterTilePlan& plan, Sketch& sketch) {
  const std::vector<ir::Axis> axes = sketch.Get(plan.stage).stage.axes;
  const std::string& vector = axes[static_cast<size_t>(plan.vector_axis)].name;
  std::vector<std::string> vectors = {vector};  // the loops along the vectors
  if (plan.columns() > plan.width) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch.Split(vector, plan.width, Tail::kMask));
    vectors = {split.outer, split.inner};
  }
  HONE_ASSIGN_OR_RETURN(const ReductionLoops reduction,
                        plan.use.has_value() ? SplitSteps(plan, sketch) : UnrollReduction(plan, sketch));
  std::vector<std::string> order = reduction.outer, unrolled;
  for (int d = 0; d < static_cast<int>(axes.size()); ++d) {
    if (d == plan.vector_axis) continue;
    order.push_back(axes[static_cast<size_t>(d)].name);
    if (d == plan.row_axis || d == plan.plane_axis) unrolled.push_back(order.back());
  }
  order.insert(order.end(), vectors.begin(), vectors.end());
  unrolled.insert(unrolled.end(), vectors.begin(), vectors.end() - 1);
  if (plan.use.has_value()) order.push_back(reduction.steps);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Reorder{order}));
  HONE_RETURN_IF_ERROR(AnnotateAll(sketch, unrolled, ir::LoopKind::kUnrolled));
  if (plan.use.has_value()) return sketch.Do(schedule::Tensorize{plan.stage, plan.use->instruction});
  return plan.width == 1 ? absl::OkStatus() : sketch.Do(Annotate{order.back(), ir::LoopKind::kVectorized});
}

absl::Status Apply(const RegisterTilePlan& plan, Sketch& sketch) {
  for (const std::string& producer : plan.inlined) HONE_RETURN_IF_ERROR(sketch.Do(schedule::Inline{producer}));
  for (const PackedCopy& copy : plan.packed) {
    HONE_RETURN_IF_ERROR(sketch.Pack(copy.source, plan.stage, copy.dims).status());
    HONE_RETURN_IF_ERROR(sketch.DoAll(copy.steps));
  }
  HONE_ASSIGN_OR_RETURN(const OutputLoops loops, ApplyOutput(plan, sketch));
  for (const PlacedProducer& producer : plan.producers) {
    if (producer.in_block) HONE_RETURN_IF_ERROR(sketch.Do(schedule::ComputeAt{producer.stage, loops.block}));
    HONE_RETURN_IF_ERROR(sketch.DoAll(producer.steps));
  }
  HONE_RETURN_IF_ERROR(ApplyReduction(plan, sketch));
  if (plan.skips_padding) HONE_RETURN_IF_ERROR(sketch.Do(schedule::SkipPadding{plan.stage}));
  if (plan.prefetched.empty()) return absl::OkStatus();
  return sketch.Do(schedule::Prefetch{plan.prefetched, plan.stage, loops.panel, 1});
}

std::string Print(const RegisterTilePlan& plan) {
  std::vector<std::string> packed, producers;
  for (const PackedCopy& copy : plan.packed) packed.push_back(copy.source);
  for (const PlacedProducer& producer : plan.producers) {
    producers.push_back(producer.stage + (producer.in_block ? " in each block" : " before"));
  }
  return fmt::format(
      "{} in tiles of {}{}: planes {} (axis {}), rows {} (axis {}), {} vectors of {} (axis {}); blocks of {}, {} "
      "outside{}; packed: {}; inlined: {}; producers: {}; reduction over {}, unrolling {} of {}{}; prefetched: {}",
      plan.stage, plan.reader, plan.nested ? ", nested" : "", plan.planes, plan.plane_axis, plan.rows, plan.row_axis,
      plan.vectors, plan.width, plan.vector_axis, plan.block, plan.rows_outside ? "rows" : "panels",
      plan.parallel ? ", parallel" : "", fmt::join(packed, " "), fmt::join(plan.inlined, " "),
      fmt::join(producers, ", "), fmt::join(plan.reduce_order, " "), static_cast<int>(plan.unrolling), plan.unrolled,
      plan.skips_padding ? ", without padding" : "", plan.prefetched);
}

absl::Status ScheduleRegisterTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                                  const std::string& prefix, const std::optional<TensorUse>& use) {
  if (FeedsProduct(sketch.state, reader)) return absl::OkStatus();  // the product's tiles place it
  const RegisterTileRequest request{reader, stage, prefix, use, sketch.Get(reader).IsTopLevel()};
  HONE_ASSIGN_OR_RETURN(const std::optional<RegisterTilePlan> plan,
                        ChooseRegisterTile(sketch.state, sketch.target, sketch.chooser, request));
  return plan.has_value() ? Apply(*plan, sketch) : absl::OkStatus();
}

}  // namespace hone::space
