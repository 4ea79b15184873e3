// SPDX-License-Identifier: Apache-2.0
// Turns loops bound to groups and lanes into a grid: every lane of every group runs the func and knows its own number.
//
// The number of lanes is the largest extent of a lane loop chain that is not inside another. Each iteration of the lane
// loops of the launch's own stage is one lane. Stages inside that fill shared memory distribute their lane loops over
// all lanes of the group. Writes to shared memory or a param outside any lane loop are done by the first lane. Not
// here: barriers (barriers.h).
#ifndef HONE_COMPILER_PASSES_BIND_H_
#define HONE_COMPILER_PASSES_BIND_H_

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace hone::passes {

// func: one top-level nest (split_launches.h). Errors: FailedPrecondition if it has two chains of group loops, a bound
// loop without constant extent, or a lane loop inside another that fills no shared memory.
absl::Status Bind(ir::Func& func);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_BIND_H_
