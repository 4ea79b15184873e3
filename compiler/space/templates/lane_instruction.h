// SPDX-License-Identifier: Apache-2.0
// Which tensor instructions of a target with lanes compute a sum of products, and the cost model of lane tiles with
// them.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_LANE_INSTRUCTION_H_
#define HONE_COMPILER_SPACE_TEMPLATES_LANE_INSTRUCTION_H_

#include <string>
#include <vector>

#include "compiler/schedule/state.h"
#include "compiler/space/templates/lane_shape.h"

namespace hone::space {

// The most bytes of an operand's row that are staged in shared memory at once, if there is room.
inline constexpr int64_t kStagedRowBytesMax = 128;

// The instructions that multiply the types of the stage's factors, with columns along the axis `vector` and steps along
// `step`. Their steps divide those of the stage. Instructions that read shared memory themselves also divide the
// columns. Operands may still need another layout, but only one in which they can be packed before the kernel.
std::vector<ir::TensorInstruction> LaneInstructionsFor(const schedule::State& state, const ir::Stage& stage,
                                                       const std::string& vector, const std::string& step,
                                                       const target::Target& target);

// Whether the load moves by exactly one element, in every dimension that the axis moves, for each step along the axis.
bool HasUnitStride(const ir::Load& load, const std::string& axis, const ir::Ranges& ranges);

// The dimension of the load's buffer whose index is the axis alone, so that it can be packed in pieces; -1: there is
// none.
int OwnDimension(const ir::Load& load, const std::string& axis);

// The most columns that a lane may have.
int64_t LaneWidthMax(ir::TensorInstruction instruction);

// Whether every lane has an even number of rows, because an instruction takes two. `size`: rows of a lane; `lanes`:
// lanes along the rows; `extent`: rows of the axis, which may leave fewer rows to a lane than `size`.
bool HasPairs(int64_t size, int64_t lanes, int64_t extent);

// Whether lanes in this shape can run the instruction together for a sum of this size. If the instruction reads shared
// memory itself, tiles must divide the axes.
bool FitsInstruction(const LaneShape& shape, const LaneWork& work, ir::TensorInstruction instruction);

// Cycles of a launch that packs a buffer.
double LayoutCycles(const ir::BufferNode& buffer, const target::Target& target);
// LaneCycles and BestLaneShape with the instruction. The cycles are infinity if the shape does not fit.
double InstructionCycles(const LaneWork& work, const LaneShape& shape, ir::TensorInstruction instruction,
                         const target::Target& target);
LaneShape BestInstructionShape(const LaneWork& work, ir::TensorInstruction instruction, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_LANE_INSTRUCTION_H_
