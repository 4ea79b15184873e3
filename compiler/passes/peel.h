// SPDX-License-Identifier: Apache-2.0
// Splits loops in two parts, so that conditions are only tested in one of them.
#ifndef HONE_COMPILER_PASSES_PEEL_H_
#define HONE_COMPILER_PASSES_PEEL_H_

#include "compiler/ir/stmt.h"

namespace hone::passes {

// Removes peeled tails: a loop of extent min(f, n - f * i) becomes two, with the constant extents f and tail. The
// condition that chooses between them, with a copy of the surrounding code each, is as far out as possible. Needs
// simplified statements, because it recognizes equal minimums by their form.
ir::Stmt Peel(const ir::Stmt& s);

// Splits off the last iteration, or the last two, of a serial loop of constant extent if only these can fail the
// conditions in its body that use its variable. The other iterations then do not test these. The body must be small: at
// most 64 stores, counting unrolled iterations, inside blocks, ifs, vectorized and unrolled loops. Needs simplified
// statements.
ir::Stmt PeelEnds(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_PEEL_H_
