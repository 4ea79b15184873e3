// SPDX-License-Identifier: Apache-2.0
// The rule for a stage without reduction on CPUs.
#ifndef HONE_COMPILER_SPACE_SKETCH_ELEMENTWISE_H_
#define HONE_COMPILER_SPACE_SKETCH_ELEMENTWISE_H_

#include <string>

#include "compiler/space/sketch.h"

namespace hone::space {

// Schedules the stage as chunks of vectors, which threads share. The stage must be at the top level.
absl::Status ScheduleElementwise(Sketch& sketch, const std::string& stage);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_ELEMENTWISE_H_
