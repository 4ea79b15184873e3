// SPDX-License-Identifier: Apache-2.0
// The template of matrix multiplies and convolutions for targets with lanes, as a class whose files are its parts.
// Private to it; it begins with Run.
//
// A group computes a block of the output, every lane a register tile of it: rows x vector elements, accumulated over
// the whole reduction. The operands go step by step of the reduction into shared memory, filled by all lanes with
// vector loads, where each element serves a whole row or column of lanes; a lane's rows and vectors lie in stripes, a
// group's width apart. Where the target has a tensor instruction for the product, lanes run it together, each with its
// own rows and columns as before. Where there are few outputs, groups walk parts of the reduction. What is preferred of
// all that a model says (lane_shape.h). Source: Volkov, Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", SC
// 2008; block, lane and inner tiles as in NVIDIA's CUTLASS.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_LANE_TILE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_LANE_TILE_H_

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/space/sketch.h"
#include "compiler/space/templates/lane_instruction.h"
#include "compiler/space/templates/lane_shape.h"

namespace hone::space {

class LaneTile {
 public:
  // What is known of a part of a reduction, as it is of the whole.
  struct Given {
    int64_t axes, step_place;
    LaneShape shape;
    std::optional<ir::TensorInstruction> instruction;
    int64_t sharing;
  };
  LaneTile(Sketch& sketch, std::string reader, std::string stage, const std::string& prefix,
           std::optional<Given> given = {})
      : sketch_(sketch),
        reader_(std::move(reader)),
        stage_(std::move(stage)),
        prefix_(prefix),
        out_(sketch.Get(reader_).stage),
        reduced_(sketch.Get(stage_).stage),
        given_(given) {}

  absl::Status Run();

 private:
  const ir::Stage& reduction() const { return sketch_.Get(stage_).stage; }
  int64_t Extent(int axis) const { return axis < 0 ? 1 : out_.axes[static_cast<size_t>(axis)].extent; }
  const std::string& NameOf(int axis) const { return out_.axes[static_cast<size_t>(axis)].name; }
  // Of the reduction, at the same place, as long as no axis is split.
  const std::string& ReducedName(int axis) const { return reduced_.axes[static_cast<size_t>(axis)].name; }
  int64_t Choose(std::string_view name, std::vector<int64_t> options, int64_t preferred);
  // The nearest that is on offer.
  int64_t ChooseNear(std::string_view name, const std::vector<int64_t>& options, int64_t preferred);
  bool VariesAlongColumns(const ir::Load& load) const;
  absl::Status Do(const schedule::Schedule& steps);
  // Whether all of them could be done now.
  bool CanDo(const schedule::Schedule& steps) const;
  static std::vector<int64_t> Powers(int64_t most);
  // What a group may have: a share of what a unit has; with instructions all, since few groups keep it busy.
  int64_t SharedBytes() const;

  // lane_tile.cc: what is tiled, and how
  // The last axis lies along vectors.
  void FindVectorAxis();
  // The other axes of the tile give reuse: an operand that varies with the vector axis does not vary with them. At most
  // two, the longest first; -1 where there are fewer.
  std::vector<std::pair<int, int>> RowAxes() const;
  // The longest axis of the whole reduction is taken in steps, outside; what is left of it is innermost inside.
  void FindStepAxis();
  // What a group reads of the load for one step, with so many rows.
  double StepBytes(const ir::Load& load, int64_t rows, int64_t more_rows) const;
  // The same with the tile that is chosen.
  double StepBytes(const ir::Load& load) const;
  // Where lanes are loops, or no operand serves a whole row of lanes, nothing but a small tile is known to be good.
  std::optional<LaneWork> Work() const;
  // The best shape for each pair of axes, and its cycles: with the instruction, or without.
  struct Shapes {
    std::vector<LaneShape> shapes;
    std::vector<double> cycles;
    int64_t best() const { return std::ranges::min_element(cycles) - cycles.begin(); }
    double least() const { return *std::ranges::min_element(cycles); }
  };
  Shapes ShapesWith(std::optional<ir::TensorInstruction> instruction, int64_t sharing = 1);
  // Whether an instruction is used, the axes of the tile, and the shape that is preferred with these.
  void ChooseShape();
  // Where too few groups would have all of the reduction to walk, each walks a part of it, and a launch of its own
  // takes the partial results together. Whether it is so.
  absl::StatusOr<bool> ReduceInParts();
  int64_t HintedSize(int axis, int64_t otherwise) const;
  absl::Status ChooseTile();
  // As long as lanes wait seldom, and as three buffers are there without asking for memory.
  void ChooseStep();
  // A constant that varies along the vector axis, but not fastest, is laid out anew so that it does.
  absl::Status PackConstants();

  // lane_tile_staging.cc: which operands go through shared memory: padding is computed there, anything else copied
  absl::Status StageOperands();
  // Of the loads, those which should be staged or must; room_ becomes what these leave.
  std::vector<bool> FindStaged(const std::vector<ir::Load>& loads);
  bool PaysToStage(const ir::Load& load) const;
  // Dimensions of a row of the load's copy: from the steps on, where an instruction wants these side by side.
  int64_t RowDims(const ir::Load& load) const;
  // What the load's copy takes of shared memory, with so many elements behind each row.
  int64_t CopyBytes(const ir::Load& load, int64_t pad) const;
  // Whether a part of an instruction would read the load beyond an end: not of shared memory, where there is something.
  bool RunsOver(const ir::Load& load) const;
  // Elements behind each row of the load's copy, as far as there is room: lanes that load together find other banks.
  int64_t ChoosePad(const std::string& name, const ir::Load& load);

  // lane_tile_loops.cc: the loops of it
  absl::Status TileOutput();
  // Elements that a lane loads and stores at once.
  int64_t Vector() const;
  // A lane's tile is every so many elements of a group's, `together` of them side by side, so that what lanes load at
  // the same time lies side by side, and not in the same banks of shared memory.
  absl::Status TileInStripes(int axis, int64_t lanes, int64_t tile, int64_t together, std::vector<std::string>* groups,
                             std::vector<std::string>* lane_loops, std::vector<std::string>* inner);
  static ir::LoopKind VectorKind(int64_t width);
  absl::Status TileAxis(const std::string& axis, int64_t lanes, int64_t tile, std::vector<std::string>* groups,
                        std::vector<std::string>* lane_loops, std::vector<std::string>* inner);
  // The loop of the reduction over a lane's tile of the axis, or over the stripes of it; `inside` one of these.
  std::string TileLoop(int axis, bool inside) const;
  absl::Status TileReduction();
  int64_t ChooseUnrolled();
  // All lanes fill what goes through shared memory, neighbours taking neighbouring vectors; by copies ahead of time
  // where the target has them and that is chosen.
  absl::Status FillShared();
  // How many buffers the copies have that go on while lanes compute; 0: no such copies.
  int64_t ChooseBuffers();
  std::vector<int64_t> Widths(const std::string& name) const;
  // How many elements one copy may have, ascending; none if the stage is no plain copy.
  std::vector<int64_t> CopyCounts(const std::string& name, int64_t buffers) const;
  schedule::Schedule FillSteps(const std::string& name, int64_t width, bool copy) const;
  // By copies of groups; nothing where it cannot be.
  schedule::Schedule FillTogether(const std::string& name) const;

  // lane_tile_instruction.cc: what is different with a tensor instruction
  // Whether an instruction reads shared memory itself.
  bool HasBlocks() const { return instruction_.has_value() && ir::EntryOf(*instruction_).blocks; }
  // Which instruction is used, if one is; `shapes`, which are without, become those with it.
  void ChooseInstruction(Shapes* shapes);
  // How many groups along the rows share the copies of columns, which they all read; `shapes` become those with that.
  void ChooseSharing(Shapes* shapes);
  // As ChooseTile, of what lanes can have that run an instruction together.
  absl::Status ChooseInstructionTile();
  // The steps of an instruction lie side by side in whatever is fixed, where it wants them to.
  absl::Status PackSteps();
  // Chunks of steps lie side by side, one of every row after the other; of what varies along the columns, all that a
  // group reads of one step after the other. What the instruction cuts off is rounded before: constants before the
  // kernel runs, else once it is staged.
  absl::Status PackChunks();
  // How the load's buffer is laid out: chunks of so many steps (0: none) of its rows or columns, which its own tile of
  // a group has one after the other where it is `tiled`. `chunks` becomes the dimension that counts them.
  std::vector<schedule::PackDim> ChunkDims(const ir::Load& load, int steps, int64_t chunk, bool tiled,
                                           size_t* chunks) const;
  // From the dimension of its rows, or columns, to the last: behind it there is one element of each, and a chunk.
  int64_t ChunkRowDims(const ir::Load& load, const std::vector<schedule::PackDim>& dims) const;
  // What ChoosePad offers, ascending, and prefers.
  std::pair<std::vector<int64_t>, int64_t> InstructionPads(const ir::Load& load) const;
  // Whether the steps of an input lie apart which an instruction reads itself: a launch before lays them side by side.
  bool IsLaidOutBefore(const ir::Load& load, const ir::TensorInstructionEntry& entry) const;
  // Puts what the instruction reads itself into shared memory.
  absl::Status StageBlocks(const std::string& name);
  // The loops over lanes (second axis, rows, columns) so that those which run an instruction together come last: four
  // along the columns, eight along the rows.
  absl::Status GatherWarps(std::vector<std::string>* lanes);
  // Rows of a group are blocks of eight: two after one another of each warp, and as often again as lanes have pairs.
  absl::Status TileInBlocks(std::vector<std::string>* groups, std::vector<std::string>* lanes,
                            std::vector<std::string>* inner);
  // As TileReduction, with the instruction innermost: two rows, two columns that lie side by side, and its steps.
  absl::Status TileInstruction();

  Sketch& sketch_;
  const std::string reader_, stage_, prefix_;
  const ir::Stage out_, reduced_;  // before anything is done
  const std::optional<Given> given_;
  std::optional<ir::TensorInstruction> instruction_;
  int64_t axes_ = 0, step_place_ = 0;         // which of RowAxes; where step_axis_ is among those summed over
  LaneShape shape_;                           // what is preferred
  int vector_ = -1, row_ = -1, second_ = -1;  // axes of the output
  int64_t width_ = 1, rows_ = 1, more_rows_ = 1, lanes_x_ = 1, lanes_y_ = 1, lanes_z_ = 1, step_ = 1;
  int64_t steps_ = 1;   // of the axis that is taken in steps
  int64_t window_ = 1;  // steps of the reduction inside one step of that axis
  std::string step_axis_;
  int64_t sharing_ = 1;  // groups that share copies of columns
  int64_t room_ = 0;     // bytes of shared memory that pads may have
  std::vector<std::string> inner_reduce_, shared_;
  std::string columns_;                // of shared_: what varies along the columns
  std::vector<std::string> swizzled_;  // of shared_: rows of 128 bytes, which the instruction reads
  // Of shared_: their rows are loops around their chunks, which are that loop before; dimensions that are a row.
  std::map<std::string, std::pair<size_t, int64_t>> rows_first_;
  std::map<std::string, std::string> rounded_;  // of shared_: what they round
};

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_LANE_TILE_H_
