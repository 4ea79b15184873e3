// SPDX-License-Identifier: Apache-2.0
// Compiled expressions of the interpreter: a tree of nodes that each hold the function that evaluates them.
//
// Evaluation is always of one element: a vector expression is evaluated once for each value of Frame::element, so there
// are no vector values. Compiling resolves names to slots, so that evaluating never looks anything up. Start with
// ExprCompiler::Compile. Not here: statements (interpret.cc), stages (interpret_workload.cc).
#ifndef HONE_COMPILER_IR_EVAL_CODE_H_
#define HONE_COMPILER_IR_EVAL_CODE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/copy_queue.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/race_log.h"

namespace hone::ir::eval {

// Integers and bool as IntImm holds them; every float type as the double of the same value.
union Value {
  int64_t i;
  double d;
};

class ContractCode;
// Tensor instructions of one lane that were begun and not settled: what they add is there at the settle and not before.
struct ProductQueue {
  struct Entry {
    const ContractCode* code = nullptr;
    int64_t firsts[3] = {};    // places of the first elements of sum, a and b
    std::vector<Value> added;  // to every element of the sum, as the operands were when it began
  };
  std::vector<Entry> open;
  std::deque<std::vector<Entry>> bundles;
};

// The state of one run. One thread.
struct Frame {
  std::vector<Value> vars;          // by variable slot
  std::vector<std::byte*> buffers;  // by buffer slot
  int element = 0;                  // of vectors
  std::string error;                // of the first illegal access; evaluation goes on with 0 until a statement looks
  bool failed = false;
  RaceLog* races = nullptr;  // of a Func with a grid or with copies
  CopyQueue copies;          // of this lane
  ProductQueue products;     // of this lane
};

struct Code;
using Run = Value (*)(const Code& code, Frame& frame);

// Where a Load or Store goes.
struct AccessCode {
  const BufferNode* buffer = nullptr;
  int slot = 0;
  std::vector<const Code*> indices;
  std::vector<int64_t> extents;  // of the buffer; one for a flat index
  const Code* mask = nullptr;
  bool elements_differ = false;  // in what the mask says of them

  // Whether the mask leaves the element out. Where elements differ its indices are computed all the same.
  bool IsMaskedOff(Frame& frame) const;
  // The element's place in the buffer, row-major; -1, and frame.failed set, if it is out of bounds or lanes race for
  // it.
  enum class Use : uint8_t { kRead, kWrite, kCopy };
  int64_t Offset(Frame& frame, Use use) const;
  // For an element by its place: false, and frame.failed set, if it is outside the buffer or lanes race for it.
  bool Touch(Frame& frame, int64_t offset, Use use) const;
};

struct Code {
  Run run = nullptr;
  const Code* a = nullptr;
  const Code* b = nullptr;
  const Code* c = nullptr;
  Value constant{};
  int slot = 0;
  DType from = DType::kInt64;  // of the first operand
  DType to = DType::kInt64;    // of the result
  double (*math)(double) = nullptr;
  AccessCode access;

  Value operator()(Frame& frame) const { return run(*this, frame); }
};

// The functions of eval_ops.cc, chosen by operator and operand type. Callers have checked the types.
Run PickUnary(UnaryOp op, DType operand);
Run PickBinary(BinaryOp op, DType operand);
Run PickCast(DType from, DType to);
Run PickLoad(DType dtype);
Run PickCall(Intrinsic function);
double (*PickMath(Intrinsic function))(double);  // nullptr unless it is a function of one number
Value Read(DType dtype, const std::byte* from);
void Write(DType dtype, Value value, std::byte* to);

class ExprCompiler {
 public:
  // Errors: InvalidArgument for a name that is not bound, and for arithmetic in float16 or bfloat16.
  absl::StatusOr<const Code*> Compile(const Expr& e);
  absl::Status CompileAccess(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask, AccessCode* out);
  const Code* CompileSlot(int slot);  // reads a variable slot
  const Code* CompileBinary(BinaryOp op, DType operand, const Code* a, const Code* b);

  // A new slot (`width` consecutive ones) for the variable, until Unbind.
  int BindVar(std::string_view name, int width = 1);
  void UnbindVar(std::string_view name);
  int NewSlot(int count = 1);
  int BindBuffer(const BufferNode* buffer);  // the same slot if bound before
  int var_slots() const { return var_slots_; }
  int buffer_slots() const { return static_cast<int>(buffers_.size()); }

 private:
  Code* Add(Run run);
  absl::Status CompileChildren(const Expr& e, Code* code);

  std::deque<Code> codes_;                                     // addresses stay
  std::map<std::string, std::vector<int>, std::less<>> vars_;  // innermost binding last
  std::unordered_map<const BufferNode*, int> buffers_;
  int var_slots_ = 0;
};

}  // namespace hone::ir::eval

#endif  // HONE_COMPILER_IR_EVAL_CODE_H_
