// SPDX-License-Identifier: Apache-2.0
// All decisions of a lane tile except those about operands and instructions. These functions do not change the
// scheduled state.
#include "compiler/space/templates/lane_tile_choice.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/lanes.h"
#include "compiler/space/sketch/operands.h"
#include "compiler/space/templates/lane_tile.h"

namespace hone::space {
namespace {

constexpr int64_t kPreferredStepMax = 16, kPreferredStepMin = 4;
constexpr int64_t kStepMax = 32;
constexpr double kStepBuffers = 3;        // buffers of a step's operands that shared memory should hold
constexpr int64_t kGroupsOfUnitMin = 3;   // the fewest groups that should share a unit's shared memory
constexpr int64_t kLaneElementsMax = 16;  // the most elements of a lane along one axis
constexpr int64_t kUnrolledOpsMax = 512;  // the most multiply-adds that are unrolled

// The last axis that has more than one element; -1: none has.
int VectorAxisOf(const ir::Stage& s) {
  int vector = static_cast<int>(s.axes.size()) - 1;
  while (vector >= 0 && s.axes[static_cast<size_t>(vector)].extent == 1) --vector;
  return vector;
}

bool VariesAlong(const ir::Load& load, int axis, const ir::Stage& s) {
  return StrideOf(load, s.axes[static_cast<size_t>(axis)].name, AxisRanges(s)).value_or(1) != 0;
}

// Whether an index of the load depends on the axis and on another axis of the output, so that rows of other groups
// begin at another position.
bool BeginsApart(const ir::Load& load, int axis, const ir::Stage& s) {
  const auto moves = [](const ir::Axis& a, const ir::Expr& index) {
    return a.extent.max() > 1 && ir::UsesVar(index, a.name);
  };
  return axis >= 0 && std::ranges::any_of(load.indices, [&](const ir::Expr& index) {
           const auto moved_by = [&](const ir::Axis& a) { return moves(a, index); };
           return moved_by(s.axes[static_cast<size_t>(axis)]) && std::ranges::count_if(s.axes, moved_by) > 1;
         });
}

// The axes that give reuse, longest first. An operand that varies along the vector axis does not vary along them.
std::vector<int> ReusingAxes(const ir::Stage& s, int vector) {
  std::vector<int> axes;
  const auto extent = [&](int d) { return s.axes[static_cast<size_t>(d)].extent.max(); };
  for (int d = 0; d < static_cast<int>(s.axes.size()); ++d) {
    const bool reuses = std::ranges::any_of(
        LoadsOf(s), [&](const ir::Load& load) { return VariesAlong(load, vector, s) && !VariesAlong(load, d, s); });
    if (d != vector && extent(d) > 1 && reuses) axes.push_back(d);
  }
  std::ranges::stable_sort(axes, std::greater<>(), extent);
  return axes;
}

// All pairs of axes along which the tile's rows may lie; at least one pair.
std::vector<RowAxes> RowAxesOf(const LaneProblem& p) {
  const std::vector<int> axes = ReusingAxes(p.sums, p.vector_axis);
  if (axes.size() < 2) return {{axes.empty() ? -1 : axes[0], -1}};
  std::vector<RowAxes> pairs;
  for (size_t a = 0; a < axes.size(); ++a) {
    for (size_t b = a + 1; b < axes.size(); ++b) pairs.push_back({axes[a], axes[b]});
  }
  return pairs;
}

// The bytes of the load that a group reads for one step, if it has the given numbers of rows.
double StepBytesOf(const LaneProblem& p, const RowAxes& axes, const ir::Load& load, int64_t rows, int64_t more_rows) {
  AxisExtents extents;
  for (const ir::Axis& axis : p.sums.reduce_axes) extents[axis.name] = axis.name == p.step_axis ? 1 : axis.extent.max();
  if (axes.row >= 0) extents[p.SumsName(axes.row)] = rows;
  if (axes.second >= 0) extents[p.SumsName(axes.second)] = more_rows;
  return static_cast<double>(RegionBytes(load, p.ranges, extents));
}

// The best shape with the instruction, and its cycles, which include the launches that lay out inputs before.
std::pair<LaneShape, double> InstructionShape(const LaneProblem& p, const RowAxes& axes,
                                              ir::TensorInstruction instruction, LaneWork work) {
  const ir::TensorInstructionEntry& entry = ir::EntryOf(instruction);
  double cycles = 0;
  const std::vector<ir::Load> loads = LoadsOf(p.sums);
  for (const ir::Load& load : loads) {
    const bool before = IsPackedBefore(p, load, entry), columns = p.VariesAlongColumns(load);
    if (before) cycles += LayoutCycles(*load.buffer, p.target);
    if (!entry.truncates || p.IsFixed(load)) continue;
    (columns ? work.rounds_columns : work.rounds_rows) |= !before || (entry.loads_a && !columns);
  }
  const LaneShape shape = BestInstructionShape(work, instruction, p.target);
  cycles += InstructionCycles(work, shape, instruction, p.target);
  // The rows of a block follow one another in memory. So do rows that are stored swizzled.
  const bool follow = entry.is_async && (!entry.loads_a || shape.staged * ir::SizeOf(entry.a) == ir::kSwizzledRowBytes);
  const bool apart = follow && axes.row >= 0 && std::ranges::any_of(loads, [&](const ir::Load& load) {
                       return !p.VariesAlongColumns(load) && !HasUnitStride(load, p.SumsName(axes.row), p.ranges);
                     });
  return {shape, apart ? std::numeric_limits<double>::infinity() : cycles};
}

// Chooses the instruction or none, the axes of the tile's rows, and the preferred shape for them. Returns the position
// of the pair of axes among RowAxesOf.
size_t ChooseShape(const LaneProblem& p, LaneTilePlan* plan) {
  LaneShapes shapes = ShapesWith(p, {});
  plan->instruction = ChooseInstruction(p, &shapes);
  if (plan->ReadsSharedMemory()) plan->sharing = ChooseSharing(p, *plan->instruction, &shapes);
  std::vector<int64_t> pairs;
  for (size_t i = 0; i < shapes.cycles.size(); ++i) {
    if (shapes.cycles[i] < std::numeric_limits<double>::infinity()) pairs.push_back(static_cast<int64_t>(i));
  }
  const int64_t pair = pairs.size() == 1 ? pairs[0] : p.Choose("axes", pairs, shapes.best());
  plan->shape = shapes.shapes[static_cast<size_t>(pair)];
  return static_cast<size_t>(pair);
}

// Chooses the number of parts of the reduction. Different groups compute different parts, which helps if there are too
// few groups otherwise.
void ChooseParts(const LaneProblem& p, LaneTilePlan* plan) {
  std::vector<int64_t> options = LaneParts(p.steps);
  if (plan->instruction.has_value()) {
    std::erase_if(options, [&](int64_t parts) { return p.steps / parts % ir::EntryOf(*plan->instruction).k != 0; });
  }
  if (p.target.memory.shared_gain <= 1 || options.size() == 1) return;
  plan->parts = p.ChooseNear("parts", options, plan->shape.parts);
  plan->part_steps = p.steps / plan->parts;
  plan->parts_axis = p.step_axis;
}

// Chooses the tile of lanes that run scalar code.
void ChooseTile(const LaneProblem& p, LaneTilePlan* plan) {
  const LaneShape preferred = plan->shape;
  LaneShape& shape = plan->shape;
  shape.more_rows = shape.lanes_z = 1;
  const int64_t lanes_max = p.target.hierarchy.max_lanes;
  const int64_t elements = p.target.memory.registers_bytes / 8;  // half the registers for accumulators
  const int64_t columns = p.Extent(plan->vector_axis), rows = p.Extent(plan->row_axis);
  const int64_t width_max = std::min<int64_t>({kLaneElementsMax, PowerOf2Ceil(columns), elements});
  shape.width = p.ChooseNear("width", PowersUpTo(width_max), p.HintedSize(plan->vector_axis, preferred.width));
  shape.rows = p.ChooseNear("rows", LaneSizes(rows, std::min<int64_t>(kLaneElementsMax, elements / shape.width)),
                            p.HintedSize(plan->row_axis, preferred.rows));
  shape.lanes_x =
      p.ChooseNear("lanes_x", PowersUpTo(std::min<int64_t>(lanes_max, PowerOf2Ceil(CeilDiv(columns, shape.width)))),
                   preferred.lanes_x);
  shape.lanes_y =
      p.ChooseNear("lanes_y", LaneSizes(CeilDiv(rows, shape.rows), lanes_max / shape.lanes_x), preferred.lanes_y);
  if (plan->second_axis < 0) return;
  const int64_t more_rows = p.Extent(plan->second_axis);
  shape.more_rows = p.ChooseNear(
      "more_rows", LaneSizes(more_rows, std::min<int64_t>(kLaneElementsMax, elements / shape.width / shape.rows)),
      p.HintedSize(plan->second_axis, preferred.more_rows));
  shape.lanes_z =
      p.ChooseNear("lanes_z", LaneSizes(CeilDiv(more_rows, shape.more_rows), lanes_max / shape.lanes_x / shape.lanes_y),
                   preferred.lanes_z);
}

// Chooses the number of steps that are staged at once. They should be many, so that lanes seldom wait at a barrier, and
// few enough that shared memory holds three buffers of their operands.
void ChooseStep(const LaneProblem& p, LaneTilePlan* plan) {
  double bytes = 0;
  for (const ir::Load& load : LoadsOf(p.sums)) bytes += TileStepBytes(p, *plan, load);
  int64_t together = 1, step_max = kStepMax, preferred = kPreferredStepMax;
  if (plan->instruction.has_value()) {
    const ir::TensorInstructionEntry& entry = ir::EntryOf(*plan->instruction);
    together = entry.k;
    step_max = kStagedRowBytesMax / ir::SizeOf(entry.a);
    preferred = plan->shape.staged > 0 ? plan->shape.staged : step_max;
  }
  const auto bytes_max = static_cast<double>(GroupSharedBytesMax(p.target, *plan));
  while (preferred > std::max(kPreferredStepMin, together) &&
         kStepBuffers * bytes * static_cast<double>(preferred) > bytes_max) {
    preferred /= 2;
  }
  // Steps that do not divide the axis need conditions in the innermost loops, and wide copies do not fit their rows.
  std::vector<int64_t> divisors;
  for (int64_t step = together; step <= std::min(step_max, p.steps); step += together) {
    if (p.steps % step == 0) divisors.push_back(step);
  }
  plan->step = divisors.back() >= std::min(kPreferredStepMin, p.steps)
                   ? p.ChooseNear("step", divisors, preferred)
                   : p.chooser.Tile(p.prefix + "step", p.steps, kStepMax, std::min(preferred, PowerOf2Ceil(p.steps)));
}

void ChooseUnrolling(const LaneProblem& p, LaneTilePlan* plan) {
  if (plan->instruction.has_value()) {
    const int64_t runs = plan->step / ir::EntryOf(*plan->instruction).k;  // instructions that one staged piece takes
    if (runs > 1 && p.Choose("unrolled", {0, 1}, 1) == 1) plan->unrolled = runs;
    return;
  }
  const LaneShape& shape = plan->shape;
  std::vector<int64_t> counts = {1};
  for (int64_t n = 2; n <= plan->step; n *= 2) {
    const bool fits = shape.rows * shape.more_rows * shape.width * n <= kUnrolledOpsMax;
    if (plan->step % n == 0 && fits) counts.push_back(n);
  }
  const int64_t preferred = UnrolledSteps({shape.width, shape.rows, shape.more_rows}, p.steps * p.window);
  const int64_t most = counts.back();
  plan->unrolled = p.Choose("unrolled", std::move(counts), std::min(preferred, most));
}

// Makes all decisions about the tile of `p`, whose stages are the plan's tile_reader and tile_stage.
absl::Status ChooseTileOf(const LaneProblem& p, const RowAxes& axes, Sketch& trial, LaneTilePlan* plan) {
  plan->vector_axis = p.vector_axis, plan->row_axis = axes.row, plan->second_axis = axes.second;
  plan->step_axis = p.step_axis;
  plan->window_axes = p.window_axes;
  if (plan->instruction.has_value()) {
    HONE_RETURN_IF_ERROR(ChooseInstructionTile(p, plan));
  } else {
    ChooseTile(p, plan);
  }
  ChooseStep(p, plan);
  HONE_ASSIGN_OR_RETURN(const std::vector<SharedStage> laid_out, ChooseLayout(p, trial, plan));
  HONE_RETURN_IF_ERROR(ChooseStaging(p, laid_out, trial, plan));
  plan->striped =
      plan->instruction.has_value() || (p.target.memory.shared_gain > 1 && p.Choose("stripes", {0, 1}, 1) == 1);
  plan->sharing = std::gcd(plan->sharing, p.Extent(plan->row_axis) / (plan->shape.lanes_y * plan->shape.rows));
  ChooseUnrolling(p, plan);
  HONE_ASSIGN_OR_RETURN(const std::string steps, ApplyLoops(*plan, trial));
  return ChooseFilling(p, steps, trial, plan);
}

}  // namespace

bool FillsLaneTile(const ir::Stage& s, const target::Target& target) {
  const int vector = VectorAxisOf(s);
  if (vector < 0) return false;
  const std::vector<int> rows = ReusingAxes(s, vector);
  int64_t results = s.axes[static_cast<size_t>(vector)].extent.max();
  for (const int d : std::span(rows).first(std::min<size_t>(2, rows.size()))) {
    results *= s.axes[static_cast<size_t>(d)].extent.max();
  }
  return !rows.empty() && results >= target.hierarchy.lane_width;
}

bool LaneProblem::VariesAlongColumns(const ir::Load& load) const { return VariesAlong(load, vector_axis, sums); }

int64_t LaneProblem::HintedSize(int axis, int64_t fallback) const {
  return axis < 0 ? fallback : chooser.Hinted(ExtentsOf(out), static_cast<size_t>(axis), fallback);
}

int64_t LaneProblem::Choose(std::string_view name, std::vector<int64_t> options, int64_t preferred) const {
  return chooser.OneOf(prefix + std::string(name), std::move(options), preferred);
}

int64_t LaneProblem::ChooseNear(std::string_view name, const std::vector<int64_t>& options, int64_t wanted) const {
  const auto nearest = std::ranges::min_element(
      options, {}, [&](int64_t option) { return std::abs(std::log2(option) - std::log2(wanted)); });
  return Choose(name, options, *nearest);
}

LaneProblem FindLaneProblem(const schedule::State& state, const target::Target& target, Chooser& chooser,
                            const LaneTileRequest& request, int64_t step_place) {
  LaneProblem p{state,
                target,
                chooser,
                request.prefix,
                state.FindNest(request.reader)->stage,
                state.FindNest(request.stage)->stage};
  p.ranges = AxisRanges(p.sums);
  p.vector_axis = VectorAxisOf(p.out);
  if (p.vector_axis < 0) return p;
  const std::vector<ir::Axis>& axes = p.sums.reduce_axes;
  p.step_place = step_place >= 0 ? step_place : std::ranges::max_element(axes, {}, [](const ir::Axis& axis) {
                                                  return axis.extent.max();
                                                }) - axes.begin();
  p.step_axis = axes[static_cast<size_t>(p.step_place)].name;
  p.steps = axes[static_cast<size_t>(p.step_place)].extent.max();
  for (const ir::Axis& axis : axes) {
    if (axis.name == p.step_axis) continue;
    p.window_axes.push_back(axis.name);
    p.window *= axis.extent.max();
  }
  return p;
}

LaneShapes ShapesWith(const LaneProblem& p, std::optional<ir::TensorInstruction> instruction, int64_t sharing) {
  LaneShapes found;
  for (const RowAxes& axes : RowAxesOf(p)) {
    std::optional<LaneWork> work = WorkOf(p, axes);
    LaneShape shape;
    double cycles = 0;
    if (work.has_value() && instruction.has_value()) {
      work->sharing = sharing;
      std::tie(shape, cycles) = InstructionShape(p, axes, *instruction, *work);
    } else if (work.has_value()) {
      shape = BestLaneShape(*work, p.target);
      cycles = LaneCycles(*work, shape, p.target);
    }
    found.shapes.push_back(shape);
    found.cycles.push_back(cycles);
  }
  return found;
}

std::optional<LaneWork> WorkOf(const LaneProblem& p, const RowAxes& axes) {
  LaneWork work;
  work.columns = p.Extent(p.vector_axis), work.rows = p.Extent(axes.row), work.more_rows = p.Extent(axes.second);
  for (const ir::Axis& axis : p.out.axes) work.others *= axis.extent.max();
  work.others /= work.columns * work.rows * work.more_rows;
  work.steps = p.steps, work.window = p.window;
  bool shares_columns = false;
  for (const ir::Load& load : LoadsOf(p.sums)) {
    work.rows_begin_apart |= BeginsApart(load, axes.row, p.sums);
    work.more_rows_begin_apart |= BeginsApart(load, axes.second, p.sums);
    const double bytes = StepBytesOf(p, axes, load, 1, 1);
    if (p.VariesAlongColumns(load)) {
      work.column_bytes += bytes;
    } else {
      shares_columns = true;
      work.row_bytes += bytes;
      work.row_growth = StepBytesOf(p, axes, load, 2, 1) / bytes - 1;
      work.more_growth = StepBytesOf(p, axes, load, 1, 2) / bytes - 1;
    }
  }
  if (p.target.memory.shared_gain <= 1 || !shares_columns) return std::nullopt;
  return work;
}

std::vector<int64_t> PowersUpTo(int64_t limit) {
  std::vector<int64_t> powers;
  for (int64_t power = 1; power <= std::max<int64_t>(1, limit); power *= 2) powers.push_back(power);
  return powers;
}

double TileStepBytes(const LaneProblem& p, const LaneTilePlan& plan, const ir::Load& load) {
  const LaneShape& shape = plan.shape;
  const int64_t columns = p.VariesAlongColumns(load) ? shape.width * shape.lanes_x : 1;
  const RowAxes axes{plan.row_axis, plan.second_axis};
  return StepBytesOf(p, axes, load, shape.rows * shape.lanes_y, shape.more_rows * shape.lanes_z) *
         static_cast<double>(columns);
}

int64_t GroupSharedBytesMax(const target::Target& target, const LaneTilePlan& plan) {
  const target::Memory& memory = target.memory;
  if (plan.instruction.has_value()) return memory.shared_bytes;
  // Without asynchronous copies a group has only one of the counted buffers, so other groups have room.
  const int64_t unasked = memory.async_copy_bytes > 0
                              ? std::min(memory.default_shared_bytes, memory.unit_shared_bytes / kGroupsOfUnitMin)
                              : memory.default_shared_bytes;
  return std::max(unasked, memory.shared_bytes / kGroupsOfUnitMin);
}

absl::StatusOr<std::optional<LaneTilePlan>> ChooseLaneTile(const schedule::State& state, const target::Target& target,
                                                           Chooser& chooser, const LaneTileRequest& request) {
  const LaneProblem whole = FindLaneProblem(state, target, chooser, request);
  if (whole.vector_axis < 0) return std::nullopt;
  LaneTilePlan plan;
  plan.reader = request.reader, plan.stage = request.stage;
  const size_t pair = ChooseShape(whole, &plan);
  ChooseParts(whole, &plan);
  // Later decisions depend on the effects of earlier ones: the operands as they are laid out and staged, the loops that
  // fill shared memory, and which steps are legal. The trial, a copy of the state, shows these effects.
  Sketch trial{state, target, chooser, {}};
  HONE_ASSIGN_OR_RETURN(const TileStages tile, ApplyParts(plan, trial));
  plan.tile_reader = tile.reader, plan.tile_stage = tile.stage;
  const schedule::State start = trial.state;
  const LaneProblem p =
      FindLaneProblem(start, target, chooser, {tile.reader, tile.stage, request.prefix}, whole.step_place);
  HONE_RETURN_IF_ERROR(ChooseTileOf(p, RowAxesOf(p)[pair], trial, &plan));
  if (plan.parts > 1) {
    const auto total = [&](Sketch& sketch) { return ScheduleLaneReduction(sketch, request.reader, request.stage); };
    HONE_ASSIGN_OR_RETURN(plan.total, StepsTaken(trial, total));
  }
  return plan;
}

}  // namespace hone::space
