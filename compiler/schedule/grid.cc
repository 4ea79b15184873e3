// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/grid.h"

#include <algorithm>

#include "compiler/schedule/copy.h"

namespace hone::schedule {
namespace {

int64_t Extent(const Nest& nest, ir::LoopKind kind) {
  int64_t extent = 1;
  for (const Loop& loop : nest.loops) extent *= loop.kind == kind ? loop.max_extent : 1;
  return extent;
}

// Whether the nest is computed inside a lane loop of an enclosing nest. Its own lane loops then add no lanes.
bool IsInsideLanes(const State& state, const Nest& nest) {
  for (const Nest* inside = &nest; !inside->IsTopLevel();) {
    const Nest* around = state.FindNest(inside->place.stage);
    for (const Loop& loop : around->loops) {
      if (loop.kind == ir::LoopKind::kLane) return true;
      if (loop.name == inside->place.loop) break;
    }
    inside = around;
  }
  return false;
}

}  // namespace

int64_t StoredBytes(const State& state, const Nest& nest) {
  int64_t bytes = ir::SizeOf(nest.stage.buffer->dtype);
  for (const ir::Size& extent : StoredShape(state, nest)) bytes *= extent.max();
  return bytes;
}

const Nest& TopLevelNestOf(const State& state, const Nest& nest) {
  const Nest* root = &nest;
  while (!root->IsTopLevel()) root = state.FindNest(root->place.stage);
  return *root;
}

std::vector<Grid> Grids(const State& state) {
  std::vector<Grid> grids;
  for (const Nest& nest : state.nests) {
    if (!nest.IsTopLevel()) continue;
    Grid& grid = grids.emplace_back();
    grid.root = &nest;
    grid.groups = Extent(nest, ir::LoopKind::kGroup);
    grid.lanes = Extent(nest, ir::LoopKind::kLane);
    if (HasBulkCopies(state, nest)) grid.shared_bytes = ir::kMbarriersBytes;
    for (const Nest& inside : state.nests) {
      if (inside.IsTopLevel() || &TopLevelNestOf(state, inside) != &nest) continue;
      if (ir::IsShared(inside.storage.scope)) grid.shared_bytes += ir::PaddedSharedBytes(StoredBytes(state, inside));
      if (!IsInsideLanes(state, inside)) grid.lanes = std::max(grid.lanes, Extent(inside, ir::LoopKind::kLane));
    }
  }
  return grids;
}

}  // namespace hone::schedule
