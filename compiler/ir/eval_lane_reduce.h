// SPDX-License-Identifier: Apache-2.0
// How the interpreter executes a lane reduction, for all lanes of a group at once. The semantics are those of
// LaneReduce (stmt.h).
#ifndef HONE_COMPILER_IR_EVAL_LANE_REDUCE_H_
#define HONE_COMPILER_IR_EVAL_LANE_REDUCE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/stmt.h"

namespace hone::ir::eval {

class LaneReduceCode {
 public:
  static absl::StatusOr<LaneReduceCode> Compile(const LaneReduce& reduce, ExprCompiler& exprs);
  // Returns "", or an error: an illegal access, a race, or a lane whose part number does not match its position.
  std::string Run(std::span<Frame> lanes, int64_t group) const;

 private:
  void Write(Frame& frame, Value value) const;

  AccessCode place_;
  const Code* mask_ = nullptr;
  const Code* part_ = nullptr;
  const Code* value_ = nullptr;
  const Code* identity_ = nullptr;
  const Code* both_ = nullptr;  // combines the values in own_slot_ and other_slot_
  size_t own_slot_ = 0, other_slot_ = 0;
  int64_t parts_ = 0;
};

}  // namespace hone::ir::eval

#endif  // HONE_COMPILER_IR_EVAL_LANE_REDUCE_H_
