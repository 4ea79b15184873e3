// SPDX-License-Identifier: Apache-2.0
// Replaces the indices of every access by one flat row-major index, which vectorization requires.
#ifndef HONE_COMPILER_PASSES_FLATTEN_H_
#define HONE_COMPILER_PASSES_FLATTEN_H_

#include "compiler/ir/stmt.h"

namespace hone::passes {

ir::Stmt Flatten(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_FLATTEN_H_
