// SPDX-License-Identifier: Apache-2.0
// Barriers in a func with a grid, wherever a lane may read or overwrite shared memory that another lane used.
//
// Never part of a schedule: derived from who writes and who reads. A stage that fills a shared buffer (a named block)
// gives every element to one lane, so that inside it the buffer needs no barrier. What a lane copies asynchronously is
// written where it waits for it.
#ifndef HONE_COMPILER_PASSES_BARRIERS_H_
#define HONE_COMPILER_PASSES_BARRIERS_H_

#include "compiler/ir/simplify.h"
#include "compiler/ir/stmt.h"

namespace hone::passes {

// ranges: of what variables there are around it.
ir::Stmt InsertBarriers(const ir::Stmt& s, const ir::Ranges& ranges);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_BARRIERS_H_
