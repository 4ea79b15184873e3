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

// Rewrites func.body and sets func.grid. func: one top-level nest (split_launches.h). FailedPrecondition, which means
// that the schedule cannot run, if func has
// - two chains of group loops, a parallel loop, or a bound loop without constant extent;
// - a lane loop inside another, unless a stage that fills shared memory begins between them;
// - a lane loop that has shared memory filled inside, or a lane reduction to local memory, but fewer iterations than
// the
//   launch has lanes.
absl::Status Bind(ir::Func& func);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_BIND_H_
