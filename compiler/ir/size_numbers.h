// SPDX-License-Identifier: Apache-2.0
// SizeNumbers: numbers the values of sizes, and writes the steps that compute them when a run begins.
//
// The values are first those of the open sizes, in their order, and then one for each step (base/size_steps.h). Equal
// expressions share a value. Not here: the arithmetic itself (size.h when compiling, base/size_steps.h at run time).
#ifndef HONE_COMPILER_IR_SIZE_NUMBERS_H_
#define HONE_COMPILER_IR_SIZE_NUMBERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "base/size_steps.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/size.h"

namespace hone::ir {

class SizeNumbers {
 public:
  // sizes: all symbols that the expressions use.
  explicit SizeNumbers(std::vector<OpenSize> sizes) : sizes_(std::move(sizes)) {}

  // The number of the value of a size, or of arithmetic on the symbols. Aborts if the expression is anything else.
  uint32_t Of(const Size& size) { return Of(Expr(size)); }
  uint32_t Of(const Expr& e);
  const std::vector<SizeStep>& steps() const { return steps_; }

 private:
  const std::vector<OpenSize> sizes_;
  std::vector<SizeStep> steps_;
  std::vector<std::pair<Expr, uint32_t>> numbers_;  // of the expressions that have a step
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_SIZE_NUMBERS_H_
