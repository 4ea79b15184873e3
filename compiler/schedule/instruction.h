// SPDX-License-Identifier: Apache-2.0
// A stage whose innermost loops are one tensor instruction: which loads are its operands, and how they lie in memory.
#ifndef HONE_COMPILER_SCHEDULE_INSTRUCTION_H_
#define HONE_COMPILER_SCHEDULE_INSTRUCTION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/state.h"

namespace hone::schedule {

// The loads that the instruction multiplies, a and b, each cast to the type of the sum if it has another:
// FailedPrecondition if the value is anything else.
struct Factors {
  ir::Load a, b;
};
absl::StatusOr<Factors> FactorsOf(const ir::Expr& value, const ir::TensorInstructionEntry& entry);

// The innermost loops of the nest that are the instruction, by what they go through, the last innermost; "" where the
// extent is 1. Steps of the reduction are one loop, or over the chunks of a row and in a chunk.
struct InstructionLoops {
  std::string m, n, chunks, k;
};
// One of these loops, the innermost first.
struct LoopOfInstruction {
  int64_t extent;
  bool reduce;
  std::string InstructionLoops::* name;
};
std::vector<LoopOfInstruction> LoopsFor(const ir::TensorInstructionEntry& entry);

InstructionLoops LoopsOf(const Nest& nest, const ir::TensorInstructionEntry& entry);

// The statement that these loops are. load: a load with indices in terms of loops, as a load of where the element is
// stored, like that of the sum. FailedPrecondition if an operand does not lie as the instruction wants it.
absl::StatusOr<ir::Stmt> ContractOf(const Nest& nest, const ir::Expr& sum, const ir::Ranges& ranges,
                                    const std::function<ir::Expr(const ir::Expr&)>& load);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_INSTRUCTION_H_
