// SPDX-License-Identifier: Apache-2.0
// How the interpreter starts an asynchronous copy: it computes the addresses. The queue decides when elements arrive
// (copy_queue.h).
#ifndef HONE_COMPILER_IR_EVAL_COPY_H_
#define HONE_COMPILER_IR_EVAL_COPY_H_

#include "absl/status/statusor.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/stmt.h"

namespace hone::ir::eval {

class CopyCode {
 public:
  static absl::StatusOr<CopyCode> Compile(const Copy& copy, ExprCompiler& exprs);
  // Starts the copy. False, with frame.failed set, if an element is out of bounds or lanes race.
  bool Run(Frame& frame) const;

 private:
  AccessCode place_, source_;
  const Code* mask_ = nullptr;
  int64_t count_ = 0;
  bool is_bulk_ = false;
};

}  // namespace hone::ir::eval

#endif  // HONE_COMPILER_IR_EVAL_COPY_H_
