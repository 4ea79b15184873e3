#include <algorithm>
#include <bit>
#include <optional>

#include "base/status.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

// Below this many elements handing work to another thread costs more than it saves.
constexpr int64_t kSerialElements = 16384;
constexpr int64_t kMostCopies = 32;  // of the value's code
constexpr int64_t kFarApart = 5;     // elements so far apart are not read as vectors
constexpr int64_t kShortestRun = 4;  // of elements that lie together

// Every load is at the stage's own indices, or a scalar: the stage is one flat run of memory.
bool IsFlat(const ir::Stage& stage) {
  for (const ir::Load& load : LoadsOf(stage)) {
    if (ir::NumElements(*load.buffer) == 1) continue;
    if (!ReadsInPlace(stage, load.buffer)) return false;
  }
  bool uses_axis = false;  // a value that depends on where it is (range, eye) has no flat form
  const std::function<void(const ir::Expr&)> visit = [&](const ir::Expr& e) {
    if (e.As<ir::Load>() != nullptr) return;
    uses_axis |= e.As<ir::Var>() != nullptr;
    ir::ForEachChild(e, visit);
  };
  visit(stage.value);
  return !uses_axis;
}

// Axes by which the value is divided into cases: short ones, not the last, that are divided where they are used. Each
// iteration written out knows its case.
std::vector<std::string> CaseAxes(const ir::Stage& stage) {
  std::vector<std::string> cases;
  int64_t copies = 1;
  for (size_t d = 0; d + 1 < stage.axes.size(); ++d) {
    const ir::Axis& axis = stage.axes[d];
    if (axis.extent < 2 || copies * axis.extent > kMostCopies) continue;
    bool divided = false;
    ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
      const ir::Binary* b = e.As<ir::Binary>();
      const bool divides = b != nullptr && (b->op == ir::BinaryOp::kFloorDiv || b->op == ir::BinaryOp::kFloorMod);
      divided |= divides && ir::UsesVar(b->a, axis.name);
    });
    if (!divided) continue;
    cases.push_back(axis.name);
    copies *= axis.extent;
  }
  return cases;
}

// The axes but for the last as one loop, with those of `cases`, written out, inside it. Its name.
absl::StatusOr<std::string> FuseOuter(Sketch& sketch, const ir::Stage& s, const std::vector<std::string>& cases,
                                      size_t keep) {
  std::vector<std::string> outer;
  for (size_t i = 0; i < s.axes.size() && (i == 0 || i + keep < s.axes.size()); ++i) {
    if (std::ranges::find(cases, s.axes[i].name) == cases.end()) outer.push_back(s.axes[i].name);
  }
  if (!cases.empty()) {
    schedule::Reorder order{outer};
    order.loops.insert(order.loops.end(), cases.begin(), cases.end());
    HONE_RETURN_IF_ERROR(sketch.Do(std::move(order)));
  }
  for (const std::string& loop : cases) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{loop, ir::LoopKind::kUnrolled}));
  }
  return FuseAll(sketch, outer);
}

// Axes side by side, by place in the stage: [first, last].
struct AxisRun {
  size_t first, last;
};

// The axes along which an operand lies in memory, where that is not the stage's last one: it is read across.
std::optional<AxisRun> AxesAcross(const ir::Stage& stage) {
  const ir::Ranges ranges = AxisRanges(stage);
  const std::vector<ir::Axis>& axes = stage.axes;
  for (const ir::Load& load : LoadsOf(stage)) {
    const auto stride = [&](size_t d) { return StrideOf(load, axes[d].name, ranges).value_or(0); };
    if (axes.size() < 2 || stride(axes.size() - 1) < kFarApart) continue;
    for (size_t d = 0; d + 1 < axes.size(); ++d) {
      if (axes[d].extent == 1 || stride(d) != 1) continue;
      AxisRun run{d, d};
      int64_t length = axes[d].extent;
      for (; run.first > 0 && (axes[run.first - 1].extent == 1 || stride(run.first - 1) == length); --run.first) {
        length *= axes[run.first - 1].extent;
      }
      if (length >= kShortestRun) return run;
    }
  }
  return std::nullopt;
}

// Square blocks, so that operand and result are both read and written along memory: the back end exchanges rows and
// columns in registers. The loop that threads share.
absl::StatusOr<std::string> TileAcross(Sketch& sketch, const ir::Stage& s, const AxisRun& run, int64_t width) {
  std::vector<std::string> outer, across;
  int64_t length = 1;
  for (size_t d = 0; d + 1 < s.axes.size(); ++d) {
    const bool in_run = d >= run.first && d <= run.last;
    (in_run ? across : outer).push_back(s.axes[d].name);
    if (in_run) length *= s.axes[d].extent;
  }
  schedule::Reorder order{outer};
  order.loops.insert(order.loops.end(), across.begin(), across.end());
  if (order.loops.size() > 1) HONE_RETURN_IF_ERROR(sketch.Do(std::move(order)));
  HONE_ASSIGN_OR_RETURN(const std::string rows, FuseAll(sketch, across));
  const std::string columns = s.axes.back().name;
  const int64_t height = std::min(width, length);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Split{rows, height, schedule::Tail::kShift}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Split{columns, width, schedule::Tail::kShift}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Reorder{{rows + "o", columns + "o", rows + "i", columns + "i"}}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{rows + "i", ir::LoopKind::kUnrolled}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{columns + "i", ir::LoopKind::kVectorized}));
  outer.push_back(rows + "o");
  return FuseAll(sketch, outer);
}

// Shares the iterations of loop `tasks` out among threads, where there is enough to do.
absl::Status ShareOut(Sketch& sketch, const std::string& prefix, const std::string& tasks, int64_t elements) {
  const int64_t chunks = sketch.chooser.OneOf(
      prefix + "chunks", {1, 2, 4, 16, 64},
      elements < kSerialElements || sketch.target.threads == 1 ? 1 : 4 * PowerOfTwo(sketch.target.threads) / 2);
  if (chunks == 1) return absl::OkStatus();
  size_t position = 0;
  const int64_t extent = sketch.state.FindLoop(tasks, &position)->loops[position].max_extent;
  HONE_RETURN_IF_ERROR(
      sketch.Do(schedule::Split{tasks, std::max<int64_t>(1, (extent + chunks - 1) / chunks), schedule::Tail::kShift}));
  return sketch.Do(schedule::Annotate{tasks + "o", ir::LoopKind::kParallel});
}

}  // namespace

absl::Status ScheduleElementwise(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  if (s.axes.empty()) return absl::OkStatus();
  const int64_t elements = ir::NumElements(*s.buffer);
  const int64_t most = sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype)));
  const std::string prefix = stage + ".";
  const size_t keep = IsFlat(s) ? 0 : 1;  // how many inner axes stay apart from the fused ones
  std::vector<std::string> cases = keep == 0 ? std::vector<std::string>() : CaseAxes(s);
  if (cases.size() + 1 >= s.axes.size()) cases.clear();  // some loop must be left for threads
  if (const std::optional<AxisRun> run = AxesAcross(s); run.has_value() && cases.empty()) {
    const int64_t width =
        std::min<int64_t>(most, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(s.axes.back().extent))));
    if (width >= kShortestRun && sketch.chooser.OneOf(prefix + "across", {0, 1}, 1) == 1) {
      HONE_ASSIGN_OR_RETURN(const std::string tasks, TileAcross(sketch, s, *run, width));
      return ShareOut(sketch, prefix, tasks, elements);
    }
  }
  HONE_ASSIGN_OR_RETURN(const std::string outer, FuseOuter(sketch, s, cases, keep));
  const bool apart = keep == 1 && s.axes.size() > 1;
  const std::string inner = apart ? s.axes.back().name : outer;
  const int64_t inner_extent = apart ? s.axes.back().extent : elements;
  std::string tasks = outer;
  const int64_t width = std::min(most, PowerOfTwo(inner_extent));
  const int64_t unroll = sketch.chooser.OneOf(prefix + "vectors", {1, 2, 4}, 1);
  if (width > 1) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Split{inner, width, TailOf(inner_extent, width)}));
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{inner + "i", ir::LoopKind::kVectorized}));
    if (unroll > 1 && inner_extent >= width * unroll) {
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::Split{inner + "o", unroll, schedule::Tail::kShift}));
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{inner + "oi", ir::LoopKind::kUnrolled}));
      if (!apart) tasks = outer + "oo";
    } else if (!apart) {
      tasks = outer + "o";
    }
  }
  return ShareOut(sketch, prefix, tasks, elements);
}

}  // namespace hone::space
