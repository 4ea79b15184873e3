// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/lines.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

constexpr int64_t kSerialSortMax = 2048;  // fewer values are sorted by one thread

// Fuses the loops, and shares them out to threads if there is enough work.
absl::Status ShareLines(Sketch& sketch, const std::string& stage, const std::vector<std::string>& loops, bool enough) {
  if (loops.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::string lines, sketch.FuseAll(loops));
  const bool share = enough && sketch.MaxExtent(lines) > 1 && sketch.target.threads > 1;
  if (sketch.chooser.OneOf(stage + ".parallel", {0, 1}, share ? 1 : 0) == 0) return absl::OkStatus();
  return sketch.Do(schedule::Annotate{lines, ir::LoopKind::kParallel});
}

absl::Status ScheduleSort(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  std::vector<std::string> lines;
  int64_t values = s.reduce_axes[0].extent.max();
  for (size_t d = 0; d + 1 < s.axes.size(); ++d) {
    lines.push_back(s.axes[d].name);
    values *= s.axes[d].extent.max();
  }
  return ShareLines(sketch, stage, lines, values >= kSerialSortMax);
}

}  // namespace

absl::StatusOr<bool> ScheduleLines(Sketch& sketch) {
  bool any = false;
  for (const std::string& stage : StagesOf(sketch.state)) {
    if (sketch.Get(stage).stage.reduction != ir::Reduction::kOrder) continue;
    HONE_RETURN_IF_ERROR(ScheduleSort(sketch, stage));
    any = true;
  }
  return any;
}

}  // namespace hone::space
