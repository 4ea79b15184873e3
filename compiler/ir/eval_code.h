// SPDX-License-Identifier: Apache-2.0
// Compiled expressions of the interpreter: a tree of nodes, each with a pointer to the function that evaluates it.
//
// Evaluation yields one element at a time. A vector expression is evaluated once for each value of Frame::element, so
// there are no vector values. Compilation replaces names by slot numbers, so that evaluation looks up nothing. Start
// with ExprCompiler::Compile. Not here: statements (interpret.cc), stages (interpret_workload.cc).
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

// i for integers and bool, as in IntImm; d for all float types, as the double of the same value.
union Value {
  int64_t i;
  double d;
};

class MmaCode;
// Asynchronous tensor instructions of one lane that are in flight. Their results are added at the wait, not before.
struct AsyncMmaQueue {
  struct Entry {
    const MmaCode* code = nullptr;
    int64_t firsts[3] = {};    // offsets of the first elements of sum, a and b
    std::vector<Value> added;  // the sums of products to add to each element, from the operands at the start
  };
  std::vector<Entry> open;
  std::deque<std::vector<Entry>> commit_groups;
};

// The state of one run, or of one lane. Used by one thread.
struct Frame {
  std::vector<Value> vars;          // by variable slot
  std::vector<std::byte*> buffers;  // by buffer slot
  int element = 0;                  // index of the vector element being evaluated
  std::string error;  // the first illegal access. Evaluation continues with 0 until the end of the statement.
  bool failed = false;
  RaceLog* races = nullptr;  // null: the Func has neither a grid nor copies
  CopyQueue copies;          // in flight, of this lane
  AsyncMmaQueue products;    // in flight, of this lane
};

struct Code;
using Run = Value (*)(const Code& code, Frame& frame);

// The address of a Load or Store.
struct AccessCode {
  const BufferNode* buffer = nullptr;
  int slot = 0;
  std::vector<const Code*> indices;
  std::vector<int64_t> extents;  // extents of the buffer's dimensions; a single one for a flat index
  const Code* mask = nullptr;
  bool elements_differ = false;  // whether the mask can differ between elements of one vector

  // Whether the mask is false for the element. If elements_differ, the indices are evaluated even then: a vector index
  // is one expression, so its loads happen for all elements.
  bool IsMaskedOff(Frame& frame) const;
  // The row-major offset of the element. -1, with frame.failed set, if an index is out of bounds or lanes race.
  enum class Use : uint8_t { kRead, kWrite, kCopy };
  int64_t Offset(Frame& frame, Use use) const;
  // Checks an access by offset. False, with frame.failed set, if it is outside the buffer or lanes race.
  bool CheckOffset(Frame& frame, int64_t offset, Use use) const;
};

struct Code {
  Run run = nullptr;
  const Code* a = nullptr;
  const Code* b = nullptr;
  const Code* c = nullptr;
  Value constant{};
  int slot = 0;
  DType from = DType::kInt64;  // type of the first operand
  DType to = DType::kInt64;    // type of the result
  double (*math)(double) = nullptr;
  AccessCode access;

  Value operator()(Frame& frame) const { return run(*this, frame); }
};

// Return the evaluation function of eval_ops.cc for an operator and its operand type. Callers have checked the types.
Run PickUnary(UnaryOp op, DType operand);
Run PickBinary(BinaryOp op, DType operand);
Run PickCast(DType from, DType to);
Run PickLoad(DType dtype);
Run PickCall(Intrinsic function);
double (*PickMath(Intrinsic function))(double);  // nullptr if the intrinsic is not a function of one number
Value Read(DType dtype, const std::byte* from);
void Write(DType dtype, Value value, std::byte* to);

class ExprCompiler {
 public:
  // Errors: InvalidArgument for a name that is not bound, and for arithmetic in float16 or bfloat16.
  absl::StatusOr<const Code*> Compile(const Expr& e);
  absl::Status CompileAccess(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask, AccessCode* out);
  const Code* CompileSlot(int slot);  // an expression that reads the variable slot
  const Code* CompileBinary(BinaryOp op, DType operand, const Code* a, const Code* b);

  // Reserves `width` consecutive slots for the variable, which is in scope until UnbindVar.
  int BindVar(std::string_view name, int width = 1);
  void UnbindVar(std::string_view name);
  int NewSlot(int count = 1);
  int BindBuffer(const BufferNode* buffer);  // returns the same slot each time
  int var_slots() const { return var_slots_; }
  int buffer_slots() const { return static_cast<int>(buffers_.size()); }

 private:
  Code* Add(Run run);
  absl::Status CompileChildren(const Expr& e, Code* code);

  std::deque<Code> codes_;                                     // a deque keeps addresses stable
  std::map<std::string, std::vector<int>, std::less<>> vars_;  // slots of each name, the innermost binding last
  std::unordered_map<const BufferNode*, int> buffers_;
  int var_slots_ = 0;
};

}  // namespace hone::ir::eval

#endif  // HONE_COMPILER_IR_EVAL_CODE_H_
