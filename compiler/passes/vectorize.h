// SPDX-License-Identifier: Apache-2.0
// Vectorized loops become vector expressions: the loop variable turns into a vector, conditions into masks.
#ifndef HONE_COMPILER_PASSES_VECTORIZE_H_
#define HONE_COMPILER_PASSES_VECTORIZE_H_

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::passes {

// Wants flattened, simplified statements, without vectors in vectorized loops. FailedPrecondition if a loop has no
// constant extent from 2 to 4096, or contains a loop whose extent differs between elements, another vectorized loop, or
// a condition on elements that it changes.
absl::StatusOr<ir::Stmt> Vectorize(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_VECTORIZE_H_
