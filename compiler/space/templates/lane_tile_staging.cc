// SPDX-License-Identifier: Apache-2.0
// Decisions about the operands of a lane tile: their layout, which of them go through shared memory, and how many
// padding elements each row has there.
#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/lanes.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/templates/lane_tile_choice.h"

namespace hone::space {
namespace {

constexpr int64_t kBanks = 32;
constexpr int64_t kPad = 4;  // padding elements that put rows of shared memory into different banks

// Packs constants that vary along the vector axis, but not fastest, so that they vary fastest along it.
absl::Status PackConstants(const LaneProblem& p, const std::string& stage, Sketch& trial) {
  const std::string& vector = p.SumsName(p.vector_axis);
  for (const ir::Load& load : LoadsOf(p.sums)) {
    const bool constant = std::ranges::any_of(trial.state.params, [&](const ir::Param& param) {
      return param.buffer == load.buffer && param.kind == ir::ParamKind::kConstant;
    });
    const auto stride = StrideOf(load, vector, p.ranges);
    const bool packed = !schedule::Reads(trial.Get(stage).stage, load.buffer.get());
    if (!constant || !stride.has_value() || *stride <= 1 || packed) continue;
    HONE_RETURN_IF_ERROR(PackLast(trial, stage, load, vector));
  }
  return absl::OkStatus();
}

// Packs constants so that the steps of an instruction are adjacent, if it requires that.
absl::Status PackSteps(const LaneProblem& p, const LaneTilePlan& plan, Sketch& trial) {
  for (const ir::Load& load : LoadsOf(p.sums)) {
    // Dimensions of one element behind the steps make copies narrow, so such constants are packed, too. Rows without
    // pads stay, because the cost model was measured with them as they lie.
    const bool narrow = !ir::UsesVar(load.indices.back(), p.step_axis) && InstructionPads(p, plan, load).second > 0;
    if (!p.StepsLieApart(load) && !(narrow && p.IsFixed(load))) continue;
    HONE_RETURN_IF_ERROR(PackLast(trial, plan.tile_stage, load, p.step_axis));
  }
  return absl::OkStatus();
}

// The layout of an operand in chunks of steps. The steps of a chunk are adjacent, and the chunks of all rows (or
// columns) follow one another.
struct ChunkLayout {
  std::vector<schedule::PackDim> dims;
  size_t chunks = 0;  // position in dims of the dimension that counts the chunks
};

// steps: the dimension of the steps. chunk: steps of a chunk; 0: no chunks. tiled: the rows or columns of one group are
// contiguous.
ChunkLayout LayOutChunks(const LaneProblem& p, const LaneTilePlan& plan, const ir::Load& load, int steps, int64_t chunk,
                         bool tiled) {
  const int own = OwnDimension(load, p.SumsName(p.VariesAlongColumns(load) ? plan.vector_axis : plan.row_axis));
  const int64_t tile = tiled && own >= 0 ? plan.shape.width * plan.shape.lanes_x : 0;
  ChunkLayout layout;
  std::vector<schedule::PackDim>& dims = layout.dims;
  std::vector<schedule::PackDim> inside;
  for (int d = 0; d < static_cast<int>(load.indices.size()); ++d) {
    if (d != steps && d != own) (own >= 0 ? dims : inside).push_back({d});
  }
  if (own >= 0) inside.push_back({own, tile, tile > 0});
  if (tile > 0) dims.push_back({own, tile, false});
  layout.chunks = dims.size();
  if (chunk > 0) dims.push_back({steps, chunk, false});
  dims.insert(dims.end(), inside.begin(), inside.end());
  dims.push_back({steps, chunk, chunk > 0});
  return layout;
}

// The number of dimensions that make up a padded row: from that of the operand's rows, or columns, to the last. The
// dimensions behind that one have one element each, except for the chunk.
int64_t ChunkRowDims(const LaneProblem& p, const LaneTilePlan& plan, const ir::Load& load,
                     const std::vector<schedule::PackDim>& dims) {
  const bool columns = p.VariesAlongColumns(load);
  if (!columns && ir::EntryOf(*plan.instruction).loads_a) return 2;  // lanes load rows, which may lie anywhere
  const auto own = std::find_if(dims.rbegin(), dims.rend(), [&](const schedule::PackDim& dim) {
    return ir::UsesVar(load.indices[static_cast<size_t>(dim.dim)],
                       p.SumsName(columns ? plan.vector_axis : plan.row_axis));
  });
  return 1 + (own - dims.rbegin());
}

// Lays out one operand of an instruction that reads shared memory itself. If the instruction would cut off low bits,
// the numbers are rounded first: constants before the kernel runs, others once they are staged. Appends the stages that
// a group should keep in shared memory.
absl::Status LayOutOperand(const LaneProblem& p, const LaneTilePlan& plan, const ir::Load& load, Sketch& trial,
                           std::vector<SharedStage>* laid_out) {
  const ir::TensorInstructionEntry& entry = ir::EntryOf(*plan.instruction);
  const auto along =
      std::ranges::find_if(load.indices, [&](const ir::Expr& index) { return ir::UsesVar(index, p.step_axis); });
  const auto steps = static_cast<int>(along - load.indices.begin());
  const bool fixed = p.IsFixed(load), before = IsPackedBefore(p, load, entry);
  const bool columns = p.VariesAlongColumns(load);
  const bool swizzled = !fixed && !before && plan.step * ir::SizeOf(load.buffer->dtype) == ir::kSwizzledRowBytes;
  const bool rounds = entry.truncates && (!entry.loads_a || columns);
  const ChunkLayout layout =
      LayOutChunks(p, plan, load, steps, swizzled ? 0 : entry.chunk, columns && (fixed || before));
  std::string source = load.buffer->name;
  if (rounds && (fixed || before)) {
    HONE_ASSIGN_OR_RETURN(source, trial.Round(source, plan.tile_stage, entry.fraction_bits));
  }
  HONE_ASSIGN_OR_RETURN(const std::string packed, trial.Pack(source, plan.tile_stage, layout.dims));
  if (fixed) return absl::OkStatus();
  if (before) {
    if (rounds) HONE_RETURN_IF_ERROR(trial.Do(schedule::Inline{source}));
    return ScheduleLaneElementwise(trial, packed);
  }
  SharedStage& shared = laid_out->emplace_back(SharedStage{packed});
  if (!swizzled) {
    // The chunks of a row are adjacent in its source, and lanes copy them together. One chunk of padding behind each
    // row puts the rows into different banks.
    shared.chunk_loop = layout.chunks;
    shared.pad = 1;
    shared.row_dims = ChunkRowDims(p, plan, load, layout.dims);
  }
  if (rounds) {
    HONE_ASSIGN_OR_RETURN(const std::string rounded, trial.Round(packed, plan.tile_stage, entry.fraction_bits));
    laid_out->emplace_back(SharedStage{rounded}).rounds = packed;
  }
  if (swizzled) laid_out->back().scope = ir::Scope::kSwizzled;
  return absl::OkStatus();
}

// Whether a part of an instruction would read the load beyond the end of an axis. Such reads are legal in shared
// memory.
bool RunsOver(const LaneProblem& p, const LaneTilePlan& plan, const ir::Load& load) {
  if (!plan.instruction.has_value()) return false;
  const LaneShape& shape = plan.shape;
  const std::pair<int, int64_t> tiles[] = {{plan.second_axis, shape.more_rows * shape.lanes_z},
                                           {plan.row_axis, shape.rows * shape.lanes_y},
                                           {plan.vector_axis, shape.width * shape.lanes_x}};
  return std::ranges::any_of(tiles, [&](const auto& tile) {
    const auto& [axis, size] = tile;
    return axis >= 0 && p.Extent(axis) % size != 0 && StrideOf(load, p.SumsName(axis), p.ranges) != 0;
  });
}

bool IsWorthStaging(const LaneProblem& p, const LaneTilePlan& plan, const ir::Load& load) {
  const LaneShape& shape = plan.shape;
  const int64_t sharers = p.VariesAlongColumns(load) ? shape.lanes_y * shape.lanes_z : shape.lanes_x;
  const double bytes = TileStepBytes(p, plan, load) * static_cast<double>(plan.step);
  return p.target.memory.shared_gain > 1 && sharers > 1 &&
         2 * bytes <= static_cast<double>(GroupSharedBytesMax(p.target, plan));
}

// The number of dimensions that make up a padded row of the load's copy: from that of the steps on, if an instruction
// requires adjacent steps; else 1.
int64_t RowDims(const LaneProblem& p, const LaneTilePlan& plan, const ir::Load& load) {
  if (!plan.instruction.has_value() || ir::EntryOf(*plan.instruction).chunk != 0) return 1;
  const auto along = [&](const ir::Expr& index) { return ir::UsesVar(index, p.step_axis); };
  const auto steps = std::find_if(load.indices.rbegin(), load.indices.rend(), along);
  return steps == load.indices.rend() ? 1 : 1 + (steps - load.indices.rbegin());
}

// The bytes of shared memory that the load's copy takes, with `pad` padding elements behind each row.
int64_t CopyBytes(const LaneProblem& p, const LaneTilePlan& plan, const ir::Load& load, int64_t pad) {
  const LaneShape& shape = plan.shape;
  AxisExtents extents;
  for (const ir::Axis& axis : p.sums.reduce_axes) extents[axis.name] = axis.extent.max();
  extents[p.step_axis] = plan.step;
  const int64_t vector = VectorElements(plan, p.target);
  const std::tuple<int, int64_t, int64_t> tiles[] = {
      {plan.second_axis, shape.lanes_z, shape.more_rows},
      {plan.row_axis, shape.lanes_y, shape.rows},
      {plan.vector_axis, shape.lanes_x * vector, CeilDiv(shape.width, vector)}};
  for (const auto& [axis, together, times] : tiles) {
    if (axis < 0) continue;
    extents[p.SumsName(axis)] = CeilDiv(std::min(together * times, p.Extent(axis)), together) * together;
  }
  std::vector<int64_t> region = RegionOf(load, p.ranges, extents);
  region[region.size() - static_cast<size_t>(RowDims(p, plan, load))] += pad;
  int64_t bytes = ir::SizeOf(load.buffer->dtype);
  for (const int64_t extent : region) bytes *= extent;
  return ir::PaddedSharedBytes(bytes);
}

// Whether the load's stage can be computed in shared memory itself: padding that only the tile reads.
bool IsOwn(const schedule::State& state, const ir::Load& load) {
  const schedule::Nest* nest = state.FindNest(load.buffer.get());
  return nest != nullptr && nest->IsTopLevel() && !nest->has_loop_steps && !nest->prepared &&
         nest->stage.reduction == ir::Reduction::kNone && !state.IsOutput(load.buffer.get()) &&
         Readers(state, load.buffer.get()).size() == 1;
}

// Chooses the padding of a row, and subtracts it from *room, the bytes of shared memory that are left for padding.
int64_t ChoosePad(const LaneProblem& p, const LaneTilePlan& plan, const std::string& name, const ir::Load& load,
                  int64_t* room) {
  std::vector<int64_t> options = {0, 1, kPad};
  int64_t preferred = 0;
  if (plan.instruction.has_value()) {
    std::tie(options, preferred) = InstructionPads(p, plan, load);
  } else {
    // The lanes along the rows that load at the same time.
    const int64_t neighbours = p.target.hierarchy.lane_width / plan.shape.lanes_x;
    const bool clashes = !p.VariesAlongColumns(load) && p.target.memory.shared_gain > 1 &&
                         plan.shape.lanes_y * plan.shape.lanes_z > 1 && neighbours * plan.step > kBanks;
    if (clashes) preferred = kPad;
  }
  const auto more = [&](int64_t pad) { return CopyBytes(p, plan, load, pad) - CopyBytes(p, plan, load, 0); };
  while (preferred > 0 && more(preferred) > *room) {
    preferred = *std::prev(std::ranges::lower_bound(options, preferred));
  }
  const int64_t pad = p.Choose(name, options, preferred);
  *room -= more(pad);
  return pad;
}

// Adds the stage to the plan's shared stages, and puts it into shared memory on the trial.
absl::Status AddShared(SharedStage shared, Sketch& trial, LaneTilePlan* plan) {
  HONE_ASSIGN_OR_RETURN(shared.stage, ApplyShared(shared, plan->tile_stage, trial));
  plan->shared.push_back(std::move(shared));
  return absl::OkStatus();
}

// Stages an operand of an instruction that reads shared memory itself, and the stage whose values it rounds, if it
// does.
absl::Status StageBlocks(const LaneProblem& p, const ir::Load& load, const std::vector<SharedStage>& laid_out,
                         const std::string& copy_of, Sketch& trial, LaneTilePlan* plan) {
  const auto find = [&](const std::string& stage) {
    const auto found = std::ranges::find(laid_out, stage, &SharedStage::stage);
    return found == laid_out.end() ? SharedStage{stage} : *found;
  };
  SharedStage shared = copy_of.empty() ? find(load.buffer->name) : SharedStage{"", copy_of};
  shared.group_copies = p.VariesAlongColumns(load);
  HONE_RETURN_IF_ERROR(AddShared(shared, trial, plan));
  return shared.rounds.empty() ? absl::OkStatus() : AddShared(find(shared.rounds), trial, plan);
}

// The loads that could go through shared memory, and whether each should.
struct Staged {
  std::vector<ir::Load> loads;
  std::vector<bool> preferred;
  int64_t room;  // bytes of shared memory that the copies leave for padding
};
Staged FindStaged(const LaneProblem& p, const LaneTilePlan& plan, const ir::Stage& sums) {
  Staged staged{LoadsOf(sums), {}, p.target.memory.shared_bytes};
  std::erase_if(staged.loads, [](const ir::Load& load) { return load.buffer->shape.empty(); });
  for (const ir::Load& load : staged.loads) {
    const int64_t bytes = CopyBytes(p, plan, load, 0);
    staged.preferred.push_back(RunsOver(p, plan, load) || (IsWorthStaging(p, plan, load) && bytes <= staged.room));
    if (staged.preferred.back()) staged.room -= bytes;
  }
  return staged;
}

}  // namespace

absl::StatusOr<std::vector<SharedStage>> ChooseLayout(const LaneProblem& p, Sketch& trial, LaneTilePlan* plan) {
  std::vector<SharedStage> laid_out;
  const auto lay_out = [&](Sketch& sketch) -> absl::Status {
    if (plan->ReadsSharedMemory()) {
      for (const ir::Load& load : LoadsOf(p.sums)) {
        HONE_RETURN_IF_ERROR(LayOutOperand(p, *plan, load, sketch, &laid_out));
      }
      return absl::OkStatus();
    }
    const bool packs_steps = plan->instruction.has_value() && ir::EntryOf(*plan->instruction).chunk == 0;
    return packs_steps ? PackSteps(p, *plan, sketch) : PackConstants(p, plan->tile_stage, sketch);
  };
  HONE_ASSIGN_OR_RETURN(plan->layout, StepsTaken(trial, lay_out));
  return laid_out;
}

absl::Status ChooseStaging(const LaneProblem& p, const std::vector<SharedStage>& laid_out, Sketch& trial,
                           LaneTilePlan* plan) {
  if (plan->shape.lanes() == 1) return absl::OkStatus();  // no other lane reads the same
  Staged staged = FindStaged(p, *plan, trial.Get(plan->tile_stage).stage);
  int number = 0;
  for (size_t i = 0; i < staged.loads.size(); ++i) {
    const ir::Load& load = staged.loads[i];
    if (!schedule::Reads(trial.Get(plan->tile_stage).stage, load.buffer.get())) continue;
    const std::string id = std::to_string(number++);
    const bool must = plan->ReadsSharedMemory() || RunsOver(p, *plan, load);
    if (!must && p.Choose("stage" + id, {0, 1}, staged.preferred[i] ? 1 : 0) == 0) continue;
    const std::string copy_of = IsOwn(trial.state, load) ? "" : load.buffer->name;
    if (plan->ReadsSharedMemory()) {
      HONE_RETURN_IF_ERROR(StageBlocks(p, load, laid_out, copy_of, trial, plan));
      continue;
    }
    SharedStage shared{copy_of.empty() ? load.buffer->name : "", copy_of};
    shared.pad = ChoosePad(p, *plan, "pad" + id, load, &staged.room);
    if (shared.pad > 0) shared.row_dims = RowDims(p, *plan, load);
    HONE_RETURN_IF_ERROR(AddShared(shared, trial, plan));
  }
  return absl::OkStatus();
}

}  // namespace hone::space
