// SPDX-License-Identifier: Apache-2.0
// Replaces a mask that is the same for all elements of a vector by one condition.
//
// For example, a vector of 16 that starts at a multiple of 16 lies completely inside or outside a bound that is a
// multiple of
// 16. For back ends that must split masked accesses into elements (OpenCL C).
#ifndef HONE_COMPILER_PASSES_UNIFORM_MASKS_H_
#define HONE_COMPILER_PASSES_UNIFORM_MASKS_H_

#include "compiler/ir/stmt.h"

namespace hone::passes {

ir::Stmt MakeMasksUniform(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_UNIFORM_MASKS_H_
