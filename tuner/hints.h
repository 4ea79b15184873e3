// SPDX-License-Identifier: Apache-2.0
// Hints for a workload from another tuner's log: the tiles of the log's tasks that have the same loops.
//
// Pure. A task matches if its output and reduction have the workload's extents. Loops of one iteration do not count.
// Neighbouring loops of the task may be a single loop here: a 1x1 convolution is a matrix product with one loop over
// pixels. Start with HintsFor.
#ifndef HONE_TUNER_HINTS_H_
#define HONE_TUNER_HINTS_H_

#include <cstddef>
#include <vector>

#include "compiler/ir/workload.h"
#include "compiler/space/chooser.h"
#include "tuner/tvm_log.h"

namespace hone::tuner {

// The tasks sorted by seconds.
std::vector<TiledTask> FastestFirst(std::vector<TiledTask> tasks);

// At most `count` different hints, from the first tasks that match. The order of `tasks` is kept.
std::vector<space::TileHint> HintsFor(const ir::Workload& workload, const std::vector<TiledTask>& tasks, size_t count);

}  // namespace hone::tuner

#endif  // HONE_TUNER_HINTS_H_
