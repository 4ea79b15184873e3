// SPDX-License-Identifier: Apache-2.0
// Masks that are the same for every element of a vector, as one condition: where a bound falls between two vectors.
//
// A vector of 16 that starts at a multiple of 16 is wholly inside a bound that is a multiple of 16, or wholly outside.
// For back ends that must take a masked access apart, element by element (OpenCL C).
#ifndef HONE_COMPILER_PASSES_UNIFORM_MASKS_H_
#define HONE_COMPILER_PASSES_UNIFORM_MASKS_H_

#include "compiler/ir/stmt.h"

namespace hone::passes {

ir::Stmt ShareMasks(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_UNIFORM_MASKS_H_
