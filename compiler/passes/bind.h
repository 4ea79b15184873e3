// SPDX-License-Identifier: Apache-2.0
// Loops bound to groups and lanes become a grid: the func is run by every lane of every group, and each knows itself.
//
// There are as many lanes as the longest loop over them has iterations that is inside no other. The loops over lanes of
// the launch's own stage belong to the lane for good; inside them one that fills shared memory shares its iterations
// out over the group. What is written to shared memory or to a param outside of such loops is written by the first
// lane. Barriers are not placed here: see barriers.h.
#ifndef HONE_COMPILER_PASSES_BIND_H_
#define HONE_COMPILER_PASSES_BIND_H_

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace hone::passes {

// func: one root nest (split_launches.h). Errors: FailedPrecondition where it has two nests of groups, a bound loop has
// no constant extent, or loops over lanes are inside each other and fill nothing.
absl::Status Bind(ir::Func& func);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_BIND_H_
