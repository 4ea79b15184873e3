// SPDX-License-Identifier: Apache-2.0
// How the interpreter executes a tensor instruction, element by element. The semantics are those of Mma (stmt.h).
#ifndef HONE_COMPILER_IR_EVAL_MMA_H_
#define HONE_COMPILER_IR_EVAL_MMA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/stmt.h"

namespace hone::ir::eval {

class MmaCode {
 public:
  static absl::StatusOr<MmaCode> Compile(const Mma& mma, ExprCompiler& exprs);
  // Executes the instruction, or, if it is asynchronous, starts it. False, with frame.failed set, if an element is out
  // of bounds or lanes race.
  bool Run(Frame& frame) const;
  // Ends a commit group and completes all but the last `pending` groups. False, with frame.failed set, if lanes race or
  // an operand changed while an instruction was in flight.
  static bool WaitForGroups(int64_t pending, Frame& frame);
  // An error if an instruction in flight uses the buffer, whose memory is about to be freed; else "".
  static std::string InUseError(const Frame& frame, const BufferNode* buffer);

 private:
  struct Operand {
    AccessCode first;
    int64_t stride = 0, column_stride = 1;
  };
  static absl::Status Compile(const MatrixOperand& operand, ExprCompiler& exprs, Operand* out);
  // Reads the element at (row, column) of the matrix that starts at `first`. chunk: contiguous elements of a row.
  static Value Read(const Operand& operand, int64_t first, int64_t row, int64_t column, int64_t chunk, Frame& frame);
  // The value of an operand as the instruction rounds it. truncates: towards zero, else to nearest.
  double Rounded(double value, bool truncates) const;
  Value Plus(Value x, Value y) const;  // wraps in 64 bits, which is right modulo 2^n for narrower types
  Value Product(int64_t row, int64_t column, const int64_t (&firsts)[3], Frame& frame) const;
  // The products for all elements of the sum, row by row.
  std::vector<Value> Products(const int64_t (&firsts)[3], Frame& frame) const;
  bool Add(const AsyncMmaQueue::Entry& entry, Frame& frame) const;
  bool CompleteMma(const AsyncMmaQueue::Entry& entry, Frame& frame) const;

  const TensorInstructionEntry* entry_ = nullptr;
  Operand sum_, a_, b_;
};

}  // namespace hone::ir::eval

#endif  // HONE_COMPILER_IR_EVAL_MMA_H_
