// SPDX-License-Identifier: Apache-2.0
// What a schedule asks of a target with lanes, read off its loops: every stage at the root is a launch with a grid.
#ifndef HONE_COMPILER_SCHEDULE_GRID_H_
#define HONE_COMPILER_SCHEDULE_GRID_H_

#include <cstdint>
#include <vector>

#include "compiler/schedule/state.h"

namespace hone::schedule {

struct Grid {
  const Nest* root = nullptr;
  int64_t groups = 1, lanes = 1;
  int64_t shared_bytes = 0;  // of one group, with padding
};

// In memory, of what is stored of the nest's stage (StoredShape).
int64_t StoredBytes(const State& state, const Nest& nest);

// The stage at the root in which the nest is computed; itself, at the root.
const Nest& RootOf(const State& state, const Nest& nest);

// Of all stages at the root, in the state's order. What lowering makes of it may need less, never more.
std::vector<Grid> Grids(const State& state);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_GRID_H_
