// SPDX-License-Identifier: Apache-2.0
// Rules that inline stages into their readers.
#ifndef HONE_COMPILER_SPACE_SKETCH_INLINE_H_
#define HONE_COMPILER_SPACE_SKETCH_INLINE_H_

#include "compiler/space/sketch.h"

namespace hone::space {

// Inlines element-wise stages if that repeats no significant work.
absl::Status InlineStages(Sketch& sketch);
// Inlines stages with several readers, also into reductions, if loading a value takes as long as computing it. For
// targets where each stage is a launch of its own and its results go through memory.
absl::Status InlineRepeated(Sketch& sketch);
// Inlines padding that no step has placed and that only short windows read. For the same targets: a launch of its own
// would move all padded data through memory.
absl::Status InlinePadding(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_INLINE_H_
