// How the interpreter runs a tensor instruction: element by element, as Contract (stmt.h) says.
#ifndef HONE_COMPILER_IR_EVAL_CONTRACT_H_
#define HONE_COMPILER_IR_EVAL_CONTRACT_H_

#include "absl/status/statusor.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/stmt.h"

namespace hone::ir::eval {

class ContractCode {
 public:
  static absl::StatusOr<ContractCode> Compile(const Contract& contract, ExprCompiler& exprs);
  // False, and frame.failed set, if an element lies outside its buffer or lanes race for it.
  bool Run(Frame& frame) const;

 private:
  struct Operand {
    AccessCode first;
    int64_t stride = 0, apart = 1;
  };
  static absl::Status Compile(const MatrixOperand& operand, ExprCompiler& exprs, Operand* out);
  // Of the element in that row and column of the matrix that begins at `first`, rows in chunks of that length.
  static Value Read(const Operand& operand, int64_t first, int64_t row, int64_t column, int64_t chunk, Frame& frame);
  // As the instruction takes it of a or b.
  double Rounded(double value) const;
  Value Sum(int64_t row, int64_t column, const int64_t (&firsts)[3], Frame& frame) const;
  bool Add(int64_t row, int64_t column, const int64_t (&firsts)[3], Frame& frame) const;

  const TensorInstructionEntry* entry_ = nullptr;
  Operand sum_, a_, b_;
};

}  // namespace hone::ir::eval

#endif  // HONE_COMPILER_IR_EVAL_CONTRACT_H_
