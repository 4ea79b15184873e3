// SPDX-License-Identifier: Apache-2.0
// Finds the stage that a reduction is tiled together with.
#ifndef HONE_COMPILER_SPACE_SKETCH_SHARED_TILE_H_
#define HONE_COMPILER_SPACE_SKETCH_SHARED_TILE_H_

#include <string>
#include <vector>

#include "compiler/space/sketch.h"

namespace hone::space {

// A reduction and the stage that reads it in place, in whose tiles it can be computed.
struct SharedTile {
  std::string reader, reduction;
};
// Finds the reader that the stage can share loops with: its only one, element-wise, in place, not in `taken` and not
// scheduled yet. If there is none, the stage becomes a copy of a reduction of its own, and is the reader. The reader is
// added to `taken`.
absl::StatusOr<SharedTile> FindOrMakeReader(Sketch& sketch, const std::string& stage, std::vector<std::string>* taken);
// The reader that FindOrMakeReader would find; "" if there is none.
std::string TileReader(const schedule::State& state, const schedule::Nest& nest, const std::vector<std::string>& taken);

// The names of the stages with a reduction, or of those without one; producers come first.
std::vector<std::string> StageNames(const schedule::State& state, bool reductions);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_SHARED_TILE_H_
