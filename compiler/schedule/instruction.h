// SPDX-License-Identifier: Apache-2.0
// Tensor instructions in a schedule: the operands of a stage whose innermost loops are one instruction, and their
// layout.
#ifndef HONE_COMPILER_SCHEDULE_INSTRUCTION_H_
#define HONE_COMPILER_SCHEDULE_INSTRUCTION_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/state.h"

namespace hone::schedule {

// The two loads whose product the stage sums, each cast to the type of the sum if necessary. They are in the order of
// the product: BuildMma decides which of them is the instruction's a. FailedPrecondition if the value has another form.
struct Factors {
  ir::Load a, b;
};
absl::StatusOr<Factors> FindFactors(const ir::Expr& value, const ir::TensorInstructionEntry& entry);

// The names of the innermost loops that form the instruction; "" for a dimension of extent 1. The reduction is one loop
// k, or a loop over the chunks of a row and the loop k inside a chunk.
struct InstructionLoops {
  std::string m, n, chunks, k;
};
// The dimensions of the instruction, innermost first: always k, chunks, n, m. One of extent 1 needs no loop.
struct RequiredLoop {
  int64_t extent;
  bool reduce;
  std::string InstructionLoops::* name;
};
std::vector<RequiredLoop> RequiredLoops(const ir::TensorInstructionEntry& entry);

// The loops of the nest in the places of RequiredLoops. Does not check their extents or kinds: the nest must have been
// tensorized, or the caller checks them.
InstructionLoops LoopsOf(const Nest& nest, const ir::TensorInstructionEntry& entry);

// Builds the statement that replaces these loops. sum: a load of the first accumulator. load: maps a load, with indices
// in terms of loops, to a load from where its buffer is stored. FailedPrecondition if an operand has the wrong layout.
absl::StatusOr<ir::Stmt> BuildMma(const Nest& nest, const ir::Expr& sum, const ir::Ranges& ranges,
                                  const std::function<ir::Expr(const ir::Expr&)>& load);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_INSTRUCTION_H_
