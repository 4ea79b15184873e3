// SPDX-License-Identifier: Apache-2.0
// How the interpreter runs a merge: all lanes of a group at once, as Merge (stmt.h) says.
#ifndef HONE_COMPILER_IR_EVAL_MERGE_H_
#define HONE_COMPILER_IR_EVAL_MERGE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/stmt.h"

namespace hone::ir::eval {

class MergeCode {
 public:
  static absl::StatusOr<MergeCode> Compile(const Merge& merge, ExprCompiler& exprs);
  // "" or why an access was illegal, lanes race, or a lane has another part than its own.
  std::string Run(std::span<Frame> lanes, int64_t group) const;

 private:
  void Write(Frame& frame, Value value) const;

  AccessCode place_;
  const Code* mask_ = nullptr;
  const Code* part_ = nullptr;
  const Code* value_ = nullptr;
  const Code* identity_ = nullptr;
  const Code* both_ = nullptr;  // of the values in two slots
  size_t own_slot_ = 0, other_slot_ = 0;
  int64_t parts_ = 0;
};

}  // namespace hone::ir::eval

#endif  // HONE_COMPILER_IR_EVAL_MERGE_H_
