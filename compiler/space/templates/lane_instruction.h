// SPDX-License-Identifier: Apache-2.0
// Which tensor instruction of a target with lanes computes a sum of products, and how the lanes of a group are then
// laid.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_LANE_INSTRUCTION_H_
#define HONE_COMPILER_SPACE_TEMPLATES_LANE_INSTRUCTION_H_

#include <string>
#include <vector>

#include "compiler/schedule/state.h"
#include "compiler/space/templates/lane_shape.h"

namespace hone::space {

inline constexpr int64_t kStagedBytes = 128;  // of a row of an operand that are staged at once, where there is room

// Those that multiply the stage's factors as they are, lanes' columns along the axis `vector` and steps along `step`;
// none if these do not divide the steps, nor, of those that read shared memory themselves, the columns.
std::vector<ir::TensorInstruction> LaneInstructionsFor(const schedule::State& state, const ir::Stage& stage,
                                                       const std::string& vector, const std::string& step,
                                                       const target::Target& target);

// Whether each step along the axis goes on by one element of the dimension that it goes along.
bool MovesByOne(const ir::Load& load, const std::string& axis, const ir::Ranges& ranges);

// The dimension of the load's buffer that the axis alone goes along, element by element, so that it can be packed in
// pieces; -1: there is none.
int OwnDimension(const ir::Load& load, const std::string& axis);

// Columns of a lane.
int64_t MostWidth(ir::TensorInstruction instruction);

// Whether so many rows of each of so many lanes, or what there is of them along a shorter axis, come in pairs.
bool HasPairs(int64_t size, int64_t lanes, int64_t extent);

// Whether the shape is one that lanes can have which run the instruction together, for a sum of these extents; where it
// reads shared memory itself, nothing is left over.
bool FitsInstruction(const LaneShape& shape, const LaneWork& work, ir::TensorInstruction instruction);

// Of a launch that lays a buffer out anew.
double LayoutCycles(const ir::BufferNode& buffer, const target::Target& target);
// As BestLaneShape and LaneCycles, with the instruction; infinity where no shape fits.
double InstructionCycles(const LaneWork& work, const LaneShape& shape, ir::TensorInstruction instruction,
                         const target::Target& target);
LaneShape BestInstructionShape(const LaneWork& work, ir::TensorInstruction instruction, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_LANE_INSTRUCTION_H_
