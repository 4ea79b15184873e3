// SPDX-License-Identifier: Apache-2.0
// Which tiles of another tuner's log are hints for a workload: those of a task with the same loops.
//
// Pure. A task is the same when output and reduction have the same extents; loops of one iteration do not count, and
// neighbouring loops of the task may be one here (the pixels of a 1x1 convolution, which is a matrix product here).
#ifndef HONE_TUNER_HINTS_H_
#define HONE_TUNER_HINTS_H_

#include <cstddef>
#include <vector>

#include "compiler/ir/workload.h"
#include "compiler/space/chooser.h"
#include "tuner/tvm_log.h"

namespace hone::tuner {

std::vector<TiledTask> FastestFirst(std::vector<TiledTask> tasks);

// At most `count`, of the first tasks that are the same, each once.
std::vector<space::TileHint> HintsFor(const ir::Workload& workload, const std::vector<TiledTask>& tasks, size_t count);

}  // namespace hone::tuner

#endif  // HONE_TUNER_HINTS_H_
