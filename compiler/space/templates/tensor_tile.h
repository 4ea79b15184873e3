// SPDX-License-Identifier: Apache-2.0
// The template of products of 8-bit integers on CPUs with instructions for them (tensor_tile.cc).
#ifndef HONE_COMPILER_SPACE_TEMPLATES_TENSOR_TILE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_TENSOR_TILE_H_

#include <optional>
#include <string>

#include "compiler/ir/tensor_instruction.h"
#include "compiler/space/sketch.h"

namespace hone::space {

// The use of an instruction: the stage whose sums it computes, and the axis of the reduction (k) of which it takes
// several steps at once.
struct TensorUse {
  ir::TensorInstruction instruction;
  std::string k, stage;
};
// Whether an instruction of the target can compute some stage, a sum of products, exactly.
bool HasTensorProduct(const ir::Workload& workload, const target::Target& target);
// Rewrites such a stage so that the instruction can compute it: types, offsets and layout of the operands. nullopt, and
// nothing done, for any other stage.
absl::StatusOr<std::optional<TensorUse>> PrepareTensorProduct(Sketch& sketch, const std::string& stage);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_TENSOR_TILE_H_
