// SPDX-License-Identifier: Apache-2.0
// Rules by which stages disappear into their readers.
#ifndef HONE_COMPILER_SPACE_SKETCH_INLINE_H_
#define HONE_COMPILER_SPACE_SKETCH_INLINE_H_

#include "compiler/space/sketch.h"

namespace hone::space {

// Element-wise stages disappear if that repeats no work that matters.
absl::Status InlineStages(Sketch& sketch);
// So do stages with several readers, reductions among them, if loading a value takes as long as computing it. For
// targets where each stage is a launch of its own and goes through memory.
absl::Status InlineRepeated(Sketch& sketch);
// So does padding that no step has placed and that only windows of few steps read. For the same targets: a launch of
// its own would bring all of it through memory.
absl::Status InlinePadding(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_INLINE_H_
