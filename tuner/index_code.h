// SPDX-License-Identifier: Apache-2.0
// Index expressions compiled to a few instructions, to be evaluated thousands of times with other loop values.
//
// Features want to know how far an access moves when a loop moves. Asking the expression (by evaluating it twice) is
// exact for splits, fusions, shifted tails and floor divisions alike, and needs no algebra. Not for tensor values:
// those are the interpreter's (compiler/ir/interpret.h).
#ifndef HONE_TUNER_INDEX_CODE_H_
#define HONE_TUNER_INDEX_CODE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone::tuner {

// Names of variables by slot.
using Slots = std::vector<std::string>;

class IndexCode {
 public:
  // Variables that have no slot count as 0. A Load inside (the index of a gather) or anything that is no integer
  // arithmetic makes the code irregular: it then evaluates to 0.
  IndexCode(const ir::Expr& index, const Slots& slots);

  int64_t Evaluate(std::span<const int64_t> values) const;
  bool irregular() const { return irregular_; }

 private:
  enum class Op : uint8_t { kConstant, kSlot, kNegate, kBinary, kSelect };
  struct Instruction {
    Op op;
    ir::BinaryOp binary = ir::BinaryOp::kAdd;
    int64_t value = 0;  // constant, or slot
  };

  void Compile(const ir::Expr& e, const Slots& slots);
  void Push(int64_t constant) { code_.push_back({Op::kConstant, ir::BinaryOp::kAdd, constant}); }

  std::vector<Instruction> code_;  // postfix
  bool irregular_ = false;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_INDEX_CODE_H_
