// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/lines.h"

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

constexpr int64_t kSerialSortMax = 2048;     // fewer values are sorted by one thread
constexpr int64_t kSerialScanMax = 1 << 20;  // fewer are scanned by one thread: they take as long as waking another
// These two are kUnrolledLengthMax and kQuadraticStepsMax of compiler/graph/passes/split_axes.cc: what that pass leaves
// whole must be a scan here, or short.
constexpr int64_t kUnrolledLengthMax = 24;  // a scan of so many places is a sum that is unrolled
constexpr int64_t kStepsMax = 100 << 10;    // the most additions that cost less than a scan's chain of them
constexpr int64_t kStripBytes = 8 << 10;    // of a row: the row before must still be in the first-level cache

int64_t Product(const std::vector<ir::Axis>& axes) {
  int64_t product = 1;
  for (const ir::Axis& axis : axes) product *= axis.extent.max();
  return product;
}

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

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

// Whether a scan is better than a reduction for each place. running: RunningAxis of the stage.
bool ShouldScan(const ir::Stage& s, std::optional<size_t> running) {
  if (!running.has_value()) return false;
  const int64_t length = s.reduce_axes[0].extent.max();
  const bool along_vectors = *running + 1 == s.axes.size();  // one chain of additions for each line
  return length > kUnrolledLengthMax && (!along_vectors || Product(s.axes) > kStepsMax / length);
}

// One pass over strips of columns: each row is the one before it plus its own values.
absl::Status ScheduleScan(Sketch& sketch, const std::string& stage, size_t running) {
  const ir::Stage s = sketch.Get(stage).stage;
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Scan{stage}));
  const bool enough = Product(s.axes) >= kSerialScanMax;
  std::vector<std::string> lines;
  for (size_t d = 0; d < s.axes.size(); ++d) {
    if (d != running && d + 1 < s.axes.size()) lines.push_back(s.axes[d].name);
  }
  if (running + 1 == s.axes.size()) return ShareLines(sketch, stage, lines, enough);
  const ir::Axis columns = s.axes.back();
  const int64_t bytes = ir::SizeOf(s.buffer->dtype), width = sketch.target.VectorWidth(std::max<int64_t>(4, bytes));
  const int64_t extent = columns.extent.max(), threads = enough && lines.empty() ? sketch.target.threads : 1;
  const int64_t strips = sketch.chooser.OneOf(stage + ".strips", TaskCounts({1, 2, 4, 8, 16}, threads), threads);
  const int64_t least = RoundUp((extent * bytes + kStripBytes - 1) / kStripBytes, threads);
  const int64_t size = RoundUp((extent + std::max(strips, least) - 1) / std::max(strips, least), width);
  HONE_ASSIGN_OR_RETURN(const SplitLoops strip, sketch.Split(columns.name, size, sketch.TailOf(columns.name, size)));
  HONE_ASSIGN_OR_RETURN(const SplitLoops vectors,
                        sketch.Split(strip.inner, std::min(width, size), schedule::Tail::kMask));
  schedule::Reorder order{lines};
  order.loops.insert(order.loops.end(), {strip.outer, s.axes[running].name, vectors.outer, vectors.inner});
  HONE_RETURN_IF_ERROR(sketch.Do(std::move(order)));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{vectors.inner, ir::LoopKind::kVectorized}));
  lines.push_back(strip.outer);
  return ShareLines(sketch, stage, lines, enough);
}

}  // namespace

absl::StatusOr<bool> ScheduleLines(Sketch& sketch) {
  bool any = false;
  for (const std::string& stage : StagesOf(sketch.state)) {
    const ir::Stage s = sketch.Get(stage).stage;
    const bool sorts = s.reduction == ir::Reduction::kOrder;
    const std::optional<size_t> running = schedule::RunningAxis(s);
    if (!sorts && !ShouldScan(s, running)) continue;
    HONE_RETURN_IF_ERROR(sorts ? ScheduleSort(sketch, stage) : ScheduleScan(sketch, stage, *running));
    any = true;
  }
  return any;
}

}  // namespace hone::space
