// SPDX-License-Identifier: Apache-2.0
// Multi-dimensional accesses become accesses by one flat index (row-major), which is what vectorization reasons on.
#ifndef HONE_COMPILER_PASSES_FLATTEN_H_
#define HONE_COMPILER_PASSES_FLATTEN_H_

#include "compiler/ir/stmt.h"

namespace hone::passes {

ir::Stmt Flatten(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_FLATTEN_H_
