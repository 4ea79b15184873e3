// SPDX-License-Identifier: Apache-2.0
// Loops in two parts, so that conditions are asked where they matter.
//
// Peeled tails: a loop of extent min(f, n - f * i) becomes two copies of its surroundings, one with the constant extent
// f and one with the constant tail, chosen by a condition as far out as it can be decided.
#ifndef HONE_COMPILER_PASSES_PEEL_H_
#define HONE_COMPILER_PASSES_PEEL_H_

#include "compiler/ir/stmt.h"

namespace hone::passes {

// Wants simplified statements (it finds equal minimums by their form).
ir::Stmt Peel(const ir::Stmt& s);

// A short serial loop around vectors (or nothing) whose last iteration, or last two, alone can fail what its body asks:
// these stand by themselves, and the others ask nothing. Wants simplified statements.
ir::Stmt PeelEnds(const ir::Stmt& s);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_PEEL_H_
