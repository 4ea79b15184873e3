// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/spread.h"

#include <algorithm>

namespace hone::schedule {

Schedule SpreadOverLanes(const State& state, int64_t lanes) {
  Schedule steps;
  for (const Nest& nest : state.nests) {
    const int64_t elements = ir::NumElements(*nest.stage.buffer);
    if (!nest.IsTopLevel() || nest.has_loop_steps || elements <= 1) continue;
    std::string loop = nest.stage.axes[0].name;
    for (size_t d = 1; d < nest.stage.axes.size(); ++d) {
      steps.push_back(Fuse{loop, nest.stage.axes[d].name});
      loop += "_" + nest.stage.axes[d].name;
    }
    steps.push_back(Split{loop, std::min(lanes, elements), Tail::kMask});
    steps.push_back(Annotate{loop + "o", ir::LoopKind::kGroup});
    steps.push_back(Annotate{loop + "i", ir::LoopKind::kLane});
  }
  return steps;
}

}  // namespace hone::schedule
