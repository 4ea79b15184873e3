// SPDX-License-Identifier: Apache-2.0
// Plans the arena of each home: intermediates and workspaces that are never alive at the same time share memory.
//
// Greedy by size: the largest buffer first, at the lowest offset that is free during its whole lifetime. According to
// the literature the result is within a few percent of the lower bound for neural networks; PeakBytes is that bound.
// Inputs and outputs are not in the arena, because they keep their contents between runs. Start with PlanArena.
#ifndef HONE_DEPLOY_PACKAGE_MEMORY_PLAN_H_
#define HONE_DEPLOY_PACKAGE_MEMORY_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "deploy/package/package_writer.h"

namespace hone::package {

// A buffer that is needed from moment `first` to moment `last`, both included. A moment is the index of a call, with
// the borders before it; the copies are the moment after the last call.
struct Lifetime {
  uint64_t bytes = 0;  // 0: it takes no memory, at offset 0
  int64_t first = 0;
  int64_t last = 0;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // per lifetime: bytes, a multiple of the alignment
  uint64_t arena_bytes = 0;       // the end of the last buffer, rounded up to the alignment
};

// Places each lifetime. alignment: bytes, a power of two. The result depends on the arguments only.
MemoryPlan PlanMemory(std::span<const Lifetime> lifetimes, uint64_t alignment = kTensorAlignment);

// A lower bound for every plan: the most bytes that are alive at one moment, each buffer rounded up to the alignment.
uint64_t PeakBytes(std::span<const Lifetime> lifetimes, uint64_t alignment = kTensorAlignment);

// Sets arena_offset of every intermediate, workspace_offset of every call, and the arena_bytes of every home. Offsets
// are multiples of kTensorAlignment, or of kSliceAlignment in the home of a device with lanes. An intermediate is alive
// from the first call or border that writes it to the last call, border or copy that uses it. InvalidArgument names a
// tensor that is used before a call has written it, an id that is out of range, or a call with a wrong number of
// arguments.
absl::Status PlanArena(PackageProgram& program);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_MEMORY_PLAN_H_
