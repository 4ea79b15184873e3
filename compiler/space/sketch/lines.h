// SPDX-License-Identifier: Apache-2.0
// The rules for stages that compute whole lines at once, on CPUs: sorts, and reductions of all values up to each place
// (step `scan`). Threads share the lines.
#ifndef HONE_COMPILER_SPACE_SKETCH_LINES_H_
#define HONE_COMPILER_SPACE_SKETCH_LINES_H_

#include "absl/status/statusor.h"
#include "compiler/space/sketch.h"

namespace hone::space {

// Schedules all of these stages. Returns false if there are none.
absl::StatusOr<bool> ScheduleLines(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_LINES_H_
