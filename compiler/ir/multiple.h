// SPDX-License-Identifier: Apache-2.0
// Divisibility of index expressions for all values of their variables: what is known about the alignment of addresses.
#ifndef HONE_COMPILER_IR_MULTIPLE_H_
#define HONE_COMPILER_IR_MULTIPLE_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone::ir {

// True if the index is a multiple of n; false if it is not or that is unknown. index: scalar kIndexType; n > 0.
bool IsMultipleOf(const Expr& index, int64_t n);
// The same for the row-major offset of an element. indices: one per dimension, or one flat index.
bool IsMultipleOf(const BufferNode& buffer, const std::vector<Expr>& indices, int64_t n);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_MULTIPLE_H_
