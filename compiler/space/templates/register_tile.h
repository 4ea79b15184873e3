// SPDX-License-Identifier: Apache-2.0
// The template of matrix multiplies and convolutions on CPUs: a register tile as the innermost loops.
//
// Vectors lie along the last axis of the output. One or two other axes are rows. A tile of rows x vectors is
// accumulated in registers over the whole reduction, and the reader's element-wise work happens on the tile before the
// only store. The operand that varies along the vector axis is read as vectors; the other one is broadcast from memory.
// Rows are an axis along which the vectors stay the same: the pixels of a channels-last convolution, whose vectors are
// weights, or the output channels of a channels-first one, whose vectors are pixels. Constant vectors, and vectors that
// are not contiguous in memory, are packed in the order of the tiles. The operand that is summed over may itself be the
// result of a depthwise convolution. Each block of rows then computes tiles of that before its own. Source: Goto, van
// de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008; tile choice as in oneDNN's
// brgemm.
//
// ChooseRegisterTile (register_tile_choice.cc) makes all decisions, and Apply (register_tile.cc) takes the steps.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_REGISTER_TILE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_REGISTER_TILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/space/sketch.h"
#include "compiler/space/templates/tensor_tile.h"

namespace hone::space {

// The stages and names for which a register tile is chosen.
struct RegisterTileRequest {
  std::string reader;  // the stage that reads the sums in place; its loops become those of the tile
  std::string stage;   // the sum of products
  std::string prefix;  // begins the names of the decisions
  std::optional<TensorUse> use = std::nullopt;  // the tensor instruction that makes the sums; nullopt: scalar code
  bool places_producers = true;  // whether stages that only `stage` reads are computed by the tile, not by the caller
};

// A copy of an operand in the order of the tiles.
struct PackedCopy {
  std::string source;
  std::vector<schedule::PackDim> dims;
  schedule::Schedule steps;  // the schedule of the copy; empty if the copy is made before the kernel runs
};

// A stage that only the reduction reads: padding, or a depthwise convolution.
struct PlacedProducer {
  std::string stage;
  bool in_block;             // computed for each block of rows; else before all of them
  schedule::Schedule steps;  // the schedule of the stage, and of sums that it reads, at that place
};

// How much of the reduction is unrolled inside one tile.
enum class Unrolling : uint8_t { kNone, kWhole, kInnermost, kPart };

// All decisions about a tile, and the facts that follow from them.
struct RegisterTilePlan {
  std::string reader, stage;
  std::optional<TensorUse> use;
  bool nested = false;  // the reader is computed inside a loop of another stage

  // Positions among the output's axes; -1: there is no such axis.
  int vector_axis = -1, row_axis = -1, plane_axis = -1;
  int64_t width = 1;                          // elements of a vector
  int64_t vectors = 1, rows = 1, planes = 1;  // the tile's size
  schedule::Tail tail = schedule::Tail::kMask;

  bool rows_outside = false;         // blocks of rows go around panels of vectors; else panels around blocks
  int64_t block = 0;                 // tiles of the outermost axis of rows in a block; 0: there are no rows
  bool parallel = false;             // threads share the blocks, and the panels if these are outside
  std::vector<std::string> inlined;  // producers that are computed where they are read
  std::vector<PackedCopy> packed;    // in the order of the loads
  std::vector<PlacedProducer> producers;

  std::vector<std::string> reduce_order;  // the axes of the reduction, outermost first
  bool splits_steps = false;              // with `use`: whether its axis has more steps than an instruction takes
  Unrolling unrolling = Unrolling::kNone;
  int64_t unrolled = 1;        // with kPart: iterations of the innermost loop
  bool skips_padding = false;  // rows that are only padding are skipped
  std::string prefetched;      // the operand whose next panel is prefetched; empty: none

  int64_t columns() const { return width * vectors; }
};
// One line, for logs and tests.
std::string Print(const RegisterTilePlan& plan);

// Asks the chooser for all decisions. The state is not changed. Nothing to do (nullopt) if every axis has one element.
// FailedPrecondition if the decisions lead to an illegal step.
absl::StatusOr<std::optional<RegisterTilePlan>> ChooseRegisterTile(const schedule::State& state,
                                                                   const target::Target& target, Chooser& chooser,
                                                                   const RegisterTileRequest& request);

// Takes the steps of a plan that was made for the sketch's state.
absl::Status Apply(const RegisterTilePlan& plan, Sketch& sketch);

// Chooses and applies. A reader that is computed inside a loop of another stage is tiled there, by the one thread that
// runs the loop. Nothing is done if a product reads what the reader makes (FeedsProduct): the tiles of that product
// have tiles of the stage inside. `prefix` begins the names of the decisions.
absl::Status ScheduleRegisterTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                                  const std::string& prefix, const std::optional<TensorUse>& use = std::nullopt);

// The parts of Apply, in order. ChooseRegisterTile tries them on a copy of the state, because later decisions depend on
// the effects of earlier ones.
struct OutputLoops {
  std::string tile;   // the innermost loop around a tile
  std::string block;  // the loop that holds one block of rows; empty: there are no rows, or the tile is nested
  std::string panel;  // the loop over panels of vectors
};
absl::StatusOr<OutputLoops> ApplyOutput(const RegisterTilePlan& plan, Sketch& sketch);
absl::Status ApplyReduction(const RegisterTilePlan& plan, Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_REGISTER_TILE_H_
