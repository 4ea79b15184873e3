// SPDX-License-Identifier: Apache-2.0
// The functions in the table of spaces that write a schedule: which rules follow one another. Private to space.cc.
//
// Each asks the sketch's chooser and takes steps on the sketch, whose state is that of the workload.
#ifndef HONE_COMPILER_SPACE_BUILDS_H_
#define HONE_COMPILER_SPACE_BUILDS_H_

#include "compiler/space/sketch.h"

namespace hone::space {

absl::Status BuildTensorTiles(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildWinogradTiles(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildAttentionTiles(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildRegisterTiles(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildSketch(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildWinogradLanes(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildLaneTiles(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildLanes(const ir::Workload& workload, Sketch& sketch);

// Prepared stages, which run once before the kernel, get one element per lane. For targets with lanes.
absl::Status SpreadPrepared(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_BUILDS_H_
