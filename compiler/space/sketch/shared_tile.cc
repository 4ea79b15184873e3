// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/shared_tile.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {

std::string TileReader(const schedule::State& state, const schedule::Nest& nest,
                       const std::vector<std::string>& taken) {
  if (state.IsOutput(nest.stage.buffer.get())) return "";
  const std::vector<std::string> readers = Readers(state, nest.stage.buffer.get());
  if (readers.size() != 1 || std::find(taken.begin(), taken.end(), readers[0]) != taken.end()) return "";
  const schedule::Nest* reader = state.FindNest(readers[0]);
  if (reader->stage.reduction != ir::Reduction::kNone || reader->prepared || reader->has_loop_steps) return "";
  return ReadsInPlace(reader->stage, nest.stage.buffer) ? readers[0] : "";
}

std::vector<std::string> StageNames(const schedule::State& state, bool reductions) {
  std::vector<std::string> names;
  for (const schedule::Nest& nest : state.nests) {
    const ir::Reduction reduction = nest.stage.reduction;
    if (reductions ? ir::Folds(reduction) : reduction == ir::Reduction::kNone) names.push_back(nest.stage.buffer->name);
  }
  return names;
}

absl::StatusOr<SharedTile> FindOrMakeReader(Sketch& sketch, const std::string& stage, std::vector<std::string>* taken) {
  SharedTile tile{TileReader(sketch.state, sketch.Get(stage), *taken), stage};
  if (tile.reader.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::string sums, sketch.CacheWrite(stage));
    tile = {stage, sums};
  }
  taken->push_back(tile.reader);
  return tile;
}

}  // namespace hone::space
