// SPDX-License-Identifier: Apache-2.0
// Index expressions compiled to a few instructions, because features evaluate each many times with different loop
// values.
//
// Features need the distance that an access moves when a loop moves. Evaluating the expression twice is exact for
// splits, fusions, shifted tails and floor divisions, and needs no algebra. Values of tensors are not computed here but
// by the interpreter (compiler/ir/interpret.h). Start with IndexCode.
#ifndef HONE_TUNER_INDEX_CODE_H_
#define HONE_TUNER_INDEX_CODE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone::tuner {

// Names of variables. Evaluate gets their values in this order.
using Slots = std::vector<std::string>;

class IndexCode {
 public:
  // Variables without a slot count as 0. A Load (the index of a gather), or anything else that is not integer
  // arithmetic, makes the code irregular: it then evaluates to 0.
  IndexCode(const ir::Expr& index, const Slots& slots);

  int64_t Evaluate(std::span<const int64_t> values) const;
  bool irregular() const { return irregular_; }

 private:
  enum class Op : uint8_t { kConstant, kSlot, kNegate, kBinary, kSelect };
  struct Instruction {
    Op op;
    ir::BinaryOp binary = ir::BinaryOp::kAdd;
    int64_t value = 0;  // the constant, or the index of the slot
  };

  void Compile(const ir::Expr& e, const Slots& slots);
  void Push(int64_t constant) { code_.push_back({Op::kConstant, ir::BinaryOp::kAdd, constant}); }

  std::vector<Instruction> code_;  // postfix
  bool irregular_ = false;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_INDEX_CODE_H_
