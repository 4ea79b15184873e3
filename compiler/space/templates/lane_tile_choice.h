// SPDX-License-Identifier: Apache-2.0
// The parts of ChooseLaneTile, in the order in which it calls them. Private to the lane tile.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_LANE_TILE_CHOICE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_LANE_TILE_CHOICE_H_

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "compiler/space/sketch/analysis.h"
#include "compiler/space/templates/lane_instruction.h"
#include "compiler/space/templates/lane_tile.h"

namespace hone::space {

// The facts for the choices: the sums and their reader before any step of the tile.
struct LaneProblem {
  const schedule::State& state;
  const target::Target& target;
  Chooser& chooser;
  std::string prefix;  // begins the names of the decisions
  ir::Stage out, sums;
  ir::Ranges ranges;                     // ranges of the axes of `sums`
  int vector_axis = -1;                  // -1: every axis has one element, and there is nothing to tile
  int64_t step_place = 0;                // position of step_axis among the axes of the reduction
  std::string step_axis;                 // the axis that is walked in steps: the longest of the whole reduction
  int64_t steps = 1;                     // extent of step_axis
  std::vector<std::string> window_axes;  // the other axes of the reduction
  int64_t window = 1;                    // steps of window_axes together for one step of step_axis

  int64_t Extent(int axis) const { return axis < 0 ? 1 : out.axes[static_cast<size_t>(axis)].extent.max(); }
  const std::string& SumsName(int axis) const { return sums.axes[static_cast<size_t>(axis)].name; }
  bool VariesAlongColumns(const ir::Load& load) const;
  bool IsFixed(const ir::Load& load) const { return schedule::IsFixed(state, load.buffer.get()); }
  // Whether the load's elements for neighbouring steps are not adjacent in memory.
  bool StepsLieApart(const ir::Load& load) const { return StrideOf(load, step_axis, ranges) != 1; }
  int64_t HintedSize(int axis, int64_t fallback) const;
  int64_t Choose(std::string_view name, std::vector<int64_t> options, int64_t preferred) const;
  // The preferred value is the option nearest to `wanted`, by ratio.
  int64_t ChooseNear(std::string_view name, const std::vector<int64_t>& options, int64_t wanted) const;
};

// step_place: the position of the step axis among the axes of the reduction; -1: the longest axis is the step axis.
LaneProblem FindLaneProblem(const schedule::State& state, const target::Target& target, Chooser& chooser,
                            const LaneTileRequest& request, int64_t step_place = -1);

// The axes along which a tile has rows; -1: none.
struct RowAxes {
  int row = -1, second = -1;
};

// The best shape for each pair of axes of rows, and its cycles; with an instruction, or without.
struct LaneShapes {
  std::vector<LaneShape> shapes;
  std::vector<double> cycles;
  int64_t best() const { return std::ranges::min_element(cycles) - cycles.begin(); }
  double min_cycles() const { return *std::ranges::min_element(cycles); }
  bool fits() const { return min_cycles() < std::numeric_limits<double>::infinity(); }
};
LaneShapes ShapesWith(const LaneProblem& p, std::optional<ir::TensorInstruction> instruction, int64_t sharing = 1);
// The input of the cost model for a tile with these axes. nullopt if the model does not apply: on a target whose shared
// memory gains nothing (shared_gain 1, a CPU through OpenCL), or if every operand varies along the columns, so that no
// load is shared by a row of lanes. The default LaneShape, a small tile, is preferred then.
std::optional<LaneWork> WorkOf(const LaneProblem& p, const RowAxes& axes);

// Powers of two up to the limit; 1 at least.
std::vector<int64_t> PowersUpTo(int64_t limit);
// The bytes of the load that a group reads for one step.
double TileStepBytes(const LaneProblem& p, const LaneTilePlan& plan, const ir::Load& load);
// The most bytes of shared memory for a group: a share of a unit's, or with an instruction all of it, since few groups
// keep a unit busy.
int64_t GroupSharedBytesMax(const target::Target& target, const LaneTilePlan& plan);

// lane_tile_instruction.cc: chooses the instruction or none. `shapes`, which hold the shapes without, become those with
// it.
std::optional<ir::TensorInstruction> ChooseInstruction(const LaneProblem& p, LaneShapes* shapes);
// Chooses how many groups along the rows share the copies of columns, which they all read. `shapes` become those with
// that.
int64_t ChooseSharing(const LaneProblem& p, ir::TensorInstruction instruction, LaneShapes* shapes);
// Chooses the tile of lanes that run an instruction together. FailedPrecondition if these lanes cannot.
absl::Status ChooseInstructionTile(const LaneProblem& p, LaneTilePlan* plan);
// Whether a launch before the kernel packs an input so that its steps are adjacent: an instruction reads the input
// itself, and its steps are not adjacent.
bool IsPackedBefore(const LaneProblem& p, const ir::Load& load, const ir::TensorInstructionEntry& entry);
// The possible padding elements of a row of an instruction's operand, ascending, and the preferred number.
std::pair<std::vector<int64_t>, int64_t> InstructionPads(const LaneProblem& p, const LaneTilePlan& plan,
                                                         const ir::Load& load);

// lane_tile_staging.cc: both functions take their steps on the trial, which has none of the tile's loops yet.
// ChooseLayout chooses how operands are laid out. It returns the stages that a group may keep in shared memory.
absl::StatusOr<std::vector<SharedStage>> ChooseLayout(const LaneProblem& p, Sketch& trial, LaneTilePlan* plan);
// Chooses which operands go through shared memory. Padding is computed there; anything else is copied.
absl::Status ChooseStaging(const LaneProblem& p, const std::vector<SharedStage>& laid_out, Sketch& trial,
                           LaneTilePlan* plan);

// lane_tile_fill.cc: chooses how lanes fill shared memory. The trial must have all loops; `steps` is the loop over
// steps.
absl::Status ChooseFilling(const LaneProblem& p, const std::string& steps, Sketch& trial, LaneTilePlan* plan);

// The steps that `rule` applies to the sketch.
template <typename Rule>
absl::StatusOr<schedule::Schedule> StepsTaken(Sketch& sketch, const Rule& rule) {
  const auto first = static_cast<std::ptrdiff_t>(sketch.steps.size());
  if (absl::Status status = rule(sketch); !status.ok()) return status;
  return schedule::Schedule(sketch.steps.begin() + first, sketch.steps.end());
}

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_LANE_TILE_CHOICE_H_
