// SPDX-License-Identifier: Apache-2.0
// Replaces each unrolled loop by one copy of its body per iteration.
#ifndef HONE_COMPILER_PASSES_UNROLL_H_
#define HONE_COMPILER_PASSES_UNROLL_H_

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::passes {

// FailedPrecondition if an extent is not constant, or if the result would have more than 4096 statements.
absl::StatusOr<ir::Stmt> Unroll(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_UNROLL_H_
