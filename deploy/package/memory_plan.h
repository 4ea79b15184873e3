// SPDX-License-Identifier: Apache-2.0
// Plans the arena: intermediates and workspaces that are never alive at the same time share memory.
//
// Greedy by size: the largest buffer first, at the lowest offset that is free during its whole life. Known from the
// literature to end within a few percent of the lower bound on networks; PeakBytes is that bound. Inputs and outputs
// are not in the arena (they keep their contents between runs). Start with PlanArena.
#ifndef HONE_DEPLOY_PACKAGE_MEMORY_PLAN_H_
#define HONE_DEPLOY_PACKAGE_MEMORY_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "deploy/package/package_writer.h"

namespace hone::package {

// A buffer that is needed from step `first` to step `last`, both included.
struct Lifetime {
  uint64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // per lifetime, multiples of the alignment
  uint64_t arena_bytes = 0;
};

// alignment: a power of two.
MemoryPlan PlanMemory(std::span<const Lifetime> lifetimes, uint64_t alignment = kTensorAlignment);

// No plan can do with less: the most bytes (each buffer rounded up to the alignment) alive at one step.
uint64_t PeakBytes(std::span<const Lifetime> lifetimes, uint64_t alignment = kTensorAlignment);

// Buffers start on multiples of kTensorAlignment, in the memory of a device with lanes on kSliceAlignment.
// Sets arena_offset of every intermediate, workspace_offset of every call, and arena_bytes. An intermediate lives from
// the call that first writes it to the last call (or copy) that uses it. InvalidArgument names a tensor that is used
// before any call has written it, or an id that is out of range.
absl::Status PlanArena(PackageProgram& program);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_MEMORY_PLAN_H_
