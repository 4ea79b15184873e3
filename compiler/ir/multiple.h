// SPDX-License-Identifier: Apache-2.0
// Which indices are multiples of a number whatever their variables are: what is known of how memory is aligned.
#ifndef HONE_COMPILER_IR_MULTIPLE_H_
#define HONE_COMPILER_IR_MULTIPLE_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone::ir {

// False if it is not, or cannot be told. index: scalar kIndexType; n > 0.
bool IsMultipleOf(const Expr& index, int64_t n);
// Of the element's place in the row-major buffer; indices: one per dimension, or a flat one.
bool IsMultipleOf(const BufferNode& buffer, const std::vector<Expr>& indices, int64_t n);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_MULTIPLE_H_
