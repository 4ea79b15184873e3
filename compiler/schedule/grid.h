// SPDX-License-Identifier: Apache-2.0
// The grid that a schedule needs, read off its loops: every top-level stage is one launch.
#ifndef HONE_COMPILER_SCHEDULE_GRID_H_
#define HONE_COMPILER_SCHEDULE_GRID_H_

#include <cstdint>
#include <vector>

#include "compiler/schedule/state.h"

namespace hone::schedule {

struct Grid {
  const Nest* root = nullptr;
  int64_t groups = 1, lanes = 1;
  int64_t shared_bytes = 0;  // of one group, with padding and the barriers of bulk copies
};

// The bytes of the nest's storage (StoredShape).
int64_t StoredBytes(const State& state, const Nest& nest);

// The top-level stage in which the nest is computed; the nest itself if it is top-level.
const Nest& TopLevelNestOf(const State& state, const Nest& nest);

// The grids of all top-level stages, in the state's order. Lowering may need less shared memory, never more.
std::vector<Grid> Grids(const State& state);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_GRID_H_
