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
absl::Status BuildQuantizedTiles(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildRegisterTiles(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildSketch(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildWinogradLanes(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildLaneTiles(const ir::Workload& workload, Sketch& sketch);
absl::Status BuildLanes(const ir::Workload& workload, Sketch& sketch);

// Takes the steps of ExecutionModel::prepared_schedule: one element per lane for every top-level stage that no step has
// touched. A build calls it last, when only the stages that prepare constants are left. Does nothing on CPUs.
absl::Status SchedulePreparedStages(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_BUILDS_H_
