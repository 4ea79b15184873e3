// SPDX-License-Identifier: Apache-2.0
// Turns vectorized loops into vector expressions: the loop variable becomes a vector, and conditions become masks.
#ifndef HONE_COMPILER_PASSES_VECTORIZE_H_
#define HONE_COMPILER_PASSES_VECTORIZE_H_

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::passes {

// Needs flattened, simplified statements without vectors in vectorized loops. FailedPrecondition if a loop's extent is
// not a constant from 2 to 4096, or if the loop contains another vectorized loop, a loop whose extent differs between
// elements, or a condition on data that its own body changes.
absl::StatusOr<ir::Stmt> Vectorize(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_VECTORIZE_H_
