// SPDX-License-Identifier: Apache-2.0
// The template of matrix multiplies and convolutions for targets with lanes.
//
// A group of lanes computes a block of the output. Each lane accumulates a register tile of it, rows x columns, over
// the whole reduction. The operands go step by step of the reduction into shared memory, filled by all lanes with
// vector loads, where each element serves a whole row or column of lanes. The rows and vectors of a lane lie in
// stripes, a group's width apart. If the target has a tensor instruction for the product, lanes run it together, each
// with its own rows and columns as before. If there are few outputs, groups walk parts of the reduction. A cost model
// gives the preferred values (lane_shape.h). Source: Volkov, Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra",
// SC 2008; block, lane and inner tiles as in NVIDIA's CUTLASS.
//
// ChooseLaneTile (lane_tile_choice.cc) makes all decisions, and Apply (lane_tile.cc) takes the steps.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_LANE_TILE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_LANE_TILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/space/sketch.h"
#include "compiler/space/templates/lane_shape.h"

namespace hone::space {

// The stages and names for which a lane tile is chosen.
struct LaneTileRequest {
  std::string reader;  // the stage that reads the sums in place; its loops become those of the tile
  std::string stage;   // the sum of products
  std::string prefix;  // begins the names of the decisions
};

// A stage that a group keeps in shared memory for some steps of the reduction.
struct SharedStage {
  std::string stage;
  std::string copy_of;        // the buffer that the new stage copies; empty: the stage exists already
  std::string rounds;         // the shared stage whose values this one rounds; empty: none
  bool group_copies = false;  // copies of a whole group may fill it
  ir::Scope scope = ir::Scope::kShared;
  int64_t pad = 0;  // padding elements behind each row, so that lanes that load at the same time use different banks
  int64_t row_dims = 1;  // how many of the last dimensions make up a row
  // For a layout in which chunks lie outside the rows: the position of the loop that counts the chunks of a row.
  // Filling moves that loop inside the loops over rows, so that consecutive lanes copy consecutive chunks of one row,
  // which are adjacent in the source. nullopt: the loops stay in order.
  std::optional<size_t> chunk_loop;
  schedule::Schedule fill;  // the steps by which lanes fill the stage
};

// All decisions about a tile, and the facts that follow from them.
struct LaneTilePlan {
  std::string reader, stage;
  int64_t parts = 1;         // parts of the reduction, each walked by other groups; a launch of its own adds them up
  int64_t part_steps = 1;    // steps of `parts_axis` in a part
  std::string parts_axis;    // the reduction axis of `stage` that is divided; empty with one part
  schedule::Schedule total;  // the steps that schedule the launch that adds up the parts; empty with one part

  // The stages of the tile: reader and stage, or those of the partial sums.
  std::string tile_reader, tile_stage;
  // Positions among the axes of tile_reader; -1: there is no such axis. Columns lie along the vector axis.
  int vector_axis = -1, row_axis = -1, second_axis = -1;
  LaneShape shape;  // its own `parts` and `staged` are only what the cost model prefers
  std::optional<ir::TensorInstruction> instruction;  // the instruction that lanes run together; nullopt: scalar code
  int64_t sharing = 1;                               // groups along the rows that share the copies of columns

  std::string step_axis;                 // the axis of the reduction that is walked in steps
  int64_t step = 1;                      // steps of that axis whose operands are staged in shared memory at once
  std::vector<std::string> window_axes;  // the other axes of the reduction
  schedule::Schedule layout;             // the steps that pack operands, so that lanes load contiguous elements
  std::vector<SharedStage> shared;       // in the order of the loads
  bool striped = false;                  // stripes: a lane's elements lie a group's width apart
  int64_t unrolled = 1;                  // unrolled iterations of a step; 1: none
  int64_t buffers = 0;     // buffers in shared memory for copies that run while lanes compute; 0: no such copies
  bool pipelined = false;  // whether some stage is filled by such copies
  bool overlaps_instructions = false;  // with `pipelined`: an instruction may run while the next step's copies start

  // Whether the instruction reads shared memory itself.
  bool ReadsSharedMemory() const { return instruction.has_value() && ir::EntryOf(*instruction).is_async; }
};
// One line, for logs and tests.
std::string Print(const LaneTilePlan& plan);

// Asks the chooser for all decisions. The state is not changed. Nothing to do (nullopt) if every axis has one element.
// FailedPrecondition if the decisions lead to an illegal step, or to lanes that cannot run the instruction.
absl::StatusOr<std::optional<LaneTilePlan>> ChooseLaneTile(const schedule::State& state, const target::Target& target,
                                                           Chooser& chooser, const LaneTileRequest& request);

// Takes the steps of a plan that was made for the sketch's state.
absl::Status Apply(const LaneTilePlan& plan, Sketch& sketch);

// Chooses and applies.
absl::Status ScheduleLaneTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                              const std::string& prefix);

// The parts of Apply, in order. ChooseLaneTile tries them on a copy of the state, because later decisions depend on the
// effects of earlier ones.
struct TileStages {
  std::string reader, stage;
};
// Splits the reduction into the plan's parts. Returns the stages of the tile.
absl::StatusOr<TileStages> ApplyParts(const LaneTilePlan& plan, Sketch& sketch);
// Puts an operand of `stage` into shared memory. Returns the name of the stage that is stored there.
absl::StatusOr<std::string> ApplyShared(const SharedStage& shared, const std::string& stage, Sketch& sketch);
// Makes the loops of the output and of the reduction. Returns the loop over steps.
absl::StatusOr<std::string> ApplyLoops(const LaneTilePlan& plan, Sketch& sketch);

// The number of elements that a lane of the tile loads and stores at once.
int64_t VectorElements(const LaneTilePlan& plan, const target::Target& target);

// Whether a lane tile of the sum of products reuses what columns load in several rows, and has a result for each lane
// of a warp.
bool FillsLaneTile(const ir::Stage& stage, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_LANE_TILE_H_
