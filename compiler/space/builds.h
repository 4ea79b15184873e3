// SPDX-License-Identifier: Apache-2.0
// The functions that write a schedule for the spaces in space.cc: each calls rules and templates in order. Private to
// space.cc.
//
// Each function asks the sketch's chooser and takes steps on the sketch, whose state must be that of the workload.
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

// Schedules prepared stages, which run once before the kernel, with one element per lane. For targets with lanes.
absl::Status SchedulePreparedStages(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_BUILDS_H_
