// SPDX-License-Identifier: Apache-2.0
// The rule for softmax, normalizations and their like on CPUs.
#ifndef HONE_COMPILER_SPACE_SKETCH_ROWS_H_
#define HONE_COMPILER_SPACE_SKETCH_ROWS_H_

#include <string>

#include "compiler/space/sketch.h"

namespace hone::space {

// Computes everything about one row inside one loop. Returns false, and does nothing, if the workload is of another
// kind.
absl::StatusOr<bool> ScheduleRows(Sketch& sketch);
// Vectorizes the last axis of a stage inside a row, unless it is one of the first `common` axes, which count rows. In a
// reduction, the reduction loops go outside that axis, and the loop over vectors is unrolled if it is short, so that
// partial results stay in registers. If the axis has one element, a short reduction is unrolled instead.
absl::Status VectorizeLast(Sketch& sketch, const std::string& stage, size_t common);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_ROWS_H_
