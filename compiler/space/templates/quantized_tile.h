// SPDX-License-Identifier: Apache-2.0
// The template of products with constant weights of few bits (MatMulNBits) on CPUs: the weights are unpacked in
// registers, inside the loops of a tile.
//
// The sum over one block of weights, which share a scale and a zero point, is a stage of its own, so that the scale is
// applied once per block. A tile is some rows by a panel of columns. Weights, scales and zero points are packed panel
// by panel: a tile reads whole vectors, in the order of memory. With one row each weight is read once, and the product
// is as fast as memory. More rows share what a tile unpacks.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_QUANTIZED_TILE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_QUANTIZED_TILE_H_

#include <string>

#include "compiler/space/sketch.h"

namespace hone::space {

// Whether the stage, in a state with inlined element-wise stages, is a sum of products in f32 of a row and constant
// weights. Another stage must compute the weights from bytes, scales per block and perhaps zero points, all constant.
bool FitsQuantizedTile(const schedule::State& state, const ir::Stage& stage);

// Schedules `stage`, for which FitsQuantizedTile holds, in tiles of `reader`, which reads it in place. `prefix` begins
// the names of the decisions.
absl::Status ScheduleQuantizedTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                                   const std::string& prefix);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_QUANTIZED_TILE_H_
