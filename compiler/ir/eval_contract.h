// SPDX-License-Identifier: Apache-2.0
// How the interpreter runs a tensor instruction: element by element, as Contract (stmt.h) says.
#ifndef HONE_COMPILER_IR_EVAL_CONTRACT_H_
#define HONE_COMPILER_IR_EVAL_CONTRACT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/stmt.h"

namespace hone::ir::eval {

class ContractCode {
 public:
  static absl::StatusOr<ContractCode> Compile(const Contract& contract, ExprCompiler& exprs);
  // False, and frame.failed set, if an element lies outside its buffer or lanes race for it. What reads shared memory
  // itself only begins.
  bool Run(Frame& frame) const;
  // What the lane began is a bundle; all bundles but the last `running` are done. False, and frame.failed set, if
  // something that one read has changed since it began, or lanes race for it.
  static bool Settle(int64_t running, Frame& frame);
  // "" or that an instruction which nobody waited for has to do with the buffer, whose memory ends.
  static std::string StillUsed(const Frame& frame, const BufferNode* buffer);

 private:
  struct Operand {
    AccessCode first;
    int64_t stride = 0, apart = 1;
  };
  static absl::Status Compile(const MatrixOperand& operand, ExprCompiler& exprs, Operand* out);
  // Of the element in that row and column of the matrix that begins at `first`, rows in chunks of that length.
  static Value Read(const Operand& operand, int64_t first, int64_t row, int64_t column, int64_t chunk, Frame& frame);
  // As the instruction takes it of a or b.
  double Rounded(double value, bool cuts) const;
  Value Plus(Value x, Value y) const;  // what wraps in 64 bits wraps the same in fewer
  Value Product(int64_t row, int64_t column, const int64_t (&firsts)[3], Frame& frame) const;
  // Of all rows and columns.
  std::vector<Value> Products(const int64_t (&firsts)[3], Frame& frame) const;
  bool Add(const ProductQueue::Entry& entry, Frame& frame) const;
  bool Finish(const ProductQueue::Entry& entry, Frame& frame) const;

  const TensorInstructionEntry* entry_ = nullptr;
  Operand sum_, a_, b_;
};

}  // namespace hone::ir::eval

#endif  // HONE_COMPILER_IR_EVAL_CONTRACT_H_
