#include "compiler/schedule/grid.h"

#include <algorithm>

namespace hone::schedule {
namespace {

int64_t Extent(const Nest& nest, ir::LoopKind kind) {
  int64_t extent = 1;
  for (const Loop& loop : nest.loops) extent *= loop.kind == kind ? loop.max_extent : 1;
  return extent;
}

}  // namespace

int64_t StoredBytes(const State& state, const Nest& nest) {
  int64_t bytes = ir::SizeOf(nest.stage.buffer->dtype);
  for (const int64_t extent : StoredShape(state, nest)) bytes *= extent;
  return bytes;
}

const Nest& RootOf(const State& state, const Nest& nest) {
  const Nest* root = &nest;
  while (!root->AtRoot()) root = state.FindNest(root->at_stage);
  return *root;
}

std::vector<Grid> Grids(const State& state) {
  std::vector<Grid> grids;
  for (const Nest& nest : state.nests) {
    if (!nest.AtRoot()) continue;
    Grid& grid = grids.emplace_back();
    grid.root = &nest;
    grid.groups = Extent(nest, ir::LoopKind::kGroup);
    grid.lanes = Extent(nest, ir::LoopKind::kLane);
    int64_t filling = 1;  // lanes, should the stage itself have none
    for (const Nest& inside : state.nests) {
      if (inside.AtRoot() || &RootOf(state, inside) != &nest) continue;
      if (ir::IsShared(inside.scope)) grid.shared_bytes += StoredBytes(state, inside);
      filling = std::max(filling, Extent(inside, ir::LoopKind::kLane));
    }
    if (grid.lanes == 1) grid.lanes = filling;
  }
  return grids;
}

}  // namespace hone::schedule
