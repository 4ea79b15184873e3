// SPDX-License-Identifier: Apache-2.0
// Inserts barriers into a func with a grid: wherever a lane may read or overwrite shared memory that another lane used.
//
// Barriers are derived from reads and writes; a schedule never contains them. In a stage that fills a shared buffer (a
// named block) each element is written by one lane, so no barrier for that buffer is needed inside the stage. Elements
// of an asynchronous copy count as written at the wait.
#ifndef HONE_COMPILER_PASSES_BARRIERS_H_
#define HONE_COMPILER_PASSES_BARRIERS_H_

#include "compiler/ir/simplify.h"
#include "compiler/ir/stmt.h"

namespace hone::passes {

// ranges: of the variables in scope around s.
ir::Stmt InsertBarriers(const ir::Stmt& s, const ir::Ranges& ranges);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_BARRIERS_H_
