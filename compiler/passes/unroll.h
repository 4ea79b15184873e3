// SPDX-License-Identifier: Apache-2.0
// Unrolled loops become their body, once per iteration.
#ifndef HONE_COMPILER_PASSES_UNROLL_H_
#define HONE_COMPILER_PASSES_UNROLL_H_

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::passes {

// FailedPrecondition if an extent is not constant, or if the text would grow beyond reason.
absl::StatusOr<ir::Stmt> Unroll(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_UNROLL_H_
