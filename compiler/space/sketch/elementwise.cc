// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/elementwise.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

// A stage with fewer elements runs on one thread: handing work to another thread would cost more than it saves.
constexpr int64_t kSerialElementsMax = 16384;
constexpr int64_t kUnrolledCopiesMax = 32;  // the most unrolled copies of the stage's expression
constexpr int64_t kAcrossStrideMin = 5;     // stride in elements from which a load counts as read across
constexpr int64_t kExchangeSideMin = 4;     // the shortest side of a block that is worth an exchange in registers
constexpr int64_t kOpenTasksMin = 16;       // iterations for each thread from which open loops inside are not fused

// Whether all axes of the stage can become one loop: every load is a scalar or reads in place, and the value does not
// depend on the position.
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

// The short axes, except the last, that occur in a division or remainder of the value. Every iteration of such an axis
// computes another case. The caller unrolls these loops, so that the case is a constant in the generated code.
std::vector<std::string> CaseAxes(const ir::Stage& stage) {
  std::vector<std::string> cases;
  int64_t copies = 1;
  for (size_t d = 0; d + 1 < stage.axes.size(); ++d) {
    const ir::Axis& axis = stage.axes[d];
    if (!axis.extent.IsFixed() || axis.extent.max() < 2 || copies * axis.extent.max() > kUnrolledCopiesMax) continue;
    bool divided = false;
    ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
      const ir::Binary* b = e.As<ir::Binary>();
      const bool divides = b != nullptr && (b->op == ir::BinaryOp::kFloorDiv || b->op == ir::BinaryOp::kFloorMod);
      divided |= divides && ir::UsesVar(b->a, axis.name);
    });
    if (!divided) continue;
    cases.push_back(axis.name);
    copies *= axis.extent.max();
  }
  return cases;
}

// How many of the axes, outermost first, should become one loop. An open extent would be a divisor in every iteration,
// so open axes are left out once there is enough for threads.
size_t CountFused(const ir::Stage& s, const std::vector<std::string>& axes, int64_t threads) {
  int64_t tasks = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const ir::Size& extent = std::ranges::find(s.axes, axes[i], &ir::Axis::name)->extent;
    if (i > 0 && !extent.IsFixed() && tasks >= kOpenTasksMin * threads) return i;
    tasks *= std::max<int64_t>(1, extent.min());
  }
  return axes.size();
}

// Fuses the axes except the last `keep` and those of `cases` into one loop, and returns its name. Open axes may stay
// loops inside it. The loops of `cases` go inside these and are unrolled.
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
  if (keep > 0) outer.resize(CountFused(s, outer, sketch.target.threads));
  return sketch.FuseAll(outer);
}

// An operand that is read across, as in a transposition: neighbours along the stage's last axis lie far apart in it.
// first, last and column are positions among the stage's axes. The axes [first, last] are contiguous in the operand.
// The axes from `column` on are contiguous in the result, and every operand lets them be fused into one. Therefore an
// image that is narrower than a vector fills blocks as well.
struct Across {
  size_t first, last, column;
  int64_t rows, columns;  // elements of the axes [first, last], and of the axes from `column` on
};

// Whether axes d and d + 1 can be fused: in every operand, one step of d is as far as the whole of d + 1.
bool AreFusable(const ir::Stage& stage, const std::vector<ir::Load>& loads, const ir::Ranges& ranges, size_t d) {
  const ir::Axis& inner = stage.axes[d + 1];
  return std::ranges::all_of(loads, [&](const ir::Load& load) {
    const auto outer_stride = StrideOf(load, stage.axes[d].name, ranges), stride = StrideOf(load, inner.name, ranges);
    return outer_stride.has_value() && stride.has_value() && *outer_stride == *stride * inner.extent.max();
  });
}

// Finds the first operand that is read across. nullopt if there is none, or if its blocks would be too small.
std::optional<Across> AxesAcross(const ir::Stage& stage) {
  const ir::Ranges ranges = AxisRanges(stage);
  const std::vector<ir::Axis>& axes = stage.axes;
  const std::vector<ir::Load> loads = LoadsOf(stage);
  for (const ir::Load& load : loads) {
    const auto stride = [&](size_t d) { return StrideOf(load, axes[d].name, ranges).value_or(0); };
    if (axes.size() < 2 || stride(axes.size() - 1) < kAcrossStrideMin) continue;
    for (size_t d = 0; d + 1 < axes.size(); ++d) {
      if (axes[d].extent == 1 || stride(d) != 1) continue;
      Across a{d, d, axes.size() - 1, axes[d].extent.max(), axes.back().extent.max()};
      for (; a.first > 0 && (axes[a.first - 1].extent == 1 || stride(a.first - 1) == a.rows); --a.first) {
        a.rows *= axes[a.first - 1].extent.max();
      }
      for (; a.column > a.last + 1 && AreFusable(stage, loads, ranges, a.column - 1); --a.column) {
        a.columns *= axes[a.column - 1].extent.max();
      }
      if (a.rows >= kExchangeSideMin && a.columns >= kExchangeSideMin) return a;
    }
  }
  return std::nullopt;
}

// Fuses the loop `tasks` with the loop `inside`, directly inside it, if `tasks` alone has fewer iterations than there
// are threads. Returns the name of the loop that threads should share.
absl::StatusOr<std::string> FuseForThreads(Sketch& sketch, const std::string& tasks, const std::string& inside,
                                           int64_t elements) {
  const bool enough = sketch.MaxExtent(tasks) >= sketch.target.threads;
  if (enough || elements < kSerialElementsMax || sketch.MaxExtent(inside) == 1) return tasks;
  return sketch.FuseAll({tasks, inside});
}

// Tiles the stage in square blocks: the operand is loaded along its rows and the result is stored along its columns.
// The back end exchanges rows and columns in registers. Returns the loop that threads should share.
absl::StatusOr<std::string> TileAcross(Sketch& sketch, const ir::Stage& s, const Across& a, int64_t most) {
  std::vector<std::string> outer, across, along;
  for (size_t d = 0; d < s.axes.size(); ++d) {
    (d >= a.column ? along : d >= a.first && d <= a.last ? across : outer).push_back(s.axes[d].name);
  }
  schedule::Reorder order{outer};
  order.loops.insert(order.loops.end(), across.begin(), across.end());
  if (order.loops.size() > 1) HONE_RETURN_IF_ERROR(sketch.Do(std::move(order)));
  HONE_ASSIGN_OR_RETURN(const std::string rows, sketch.FuseAll(across));
  HONE_ASSIGN_OR_RETURN(const std::string columns, sketch.FuseAll(along));
  const int64_t width = std::min(most, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(a.columns))));
  HONE_ASSIGN_OR_RETURN(const SplitLoops row, sketch.Split(rows, std::min(width, a.rows), schedule::Tail::kShift));
  HONE_ASSIGN_OR_RETURN(const SplitLoops column, sketch.Split(columns, width, schedule::Tail::kShift));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Reorder{{row.outer, column.outer, row.inner, column.inner}}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{row.inner, ir::LoopKind::kUnrolled}));
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{column.inner, ir::LoopKind::kVectorized}));
  outer.push_back(row.outer);
  HONE_ASSIGN_OR_RETURN(const std::string tasks, sketch.FuseAll(outer));
  return FuseForThreads(sketch, tasks, column.outer, ir::NumElements(*s.buffer));
}

// Splits the loop `tasks` into chunks for threads. Small stages stay on one thread by default.
absl::Status SplitAmongThreads(Sketch& sketch, const std::string& prefix, const std::string& tasks, int64_t elements) {
  const int64_t threads = sketch.target.threads;
  const bool small = elements < kSerialElementsMax || threads == 1;
  const int64_t chunks =
      sketch.chooser.OneOf(prefix + "chunks", TaskCounts({1, 2, 4, 16, 64}, threads), small ? 1 : 2 * threads);
  if (chunks == 1) return absl::OkStatus();
  const int64_t size = TaskSize(sketch.MaxExtent(tasks), chunks, threads);
  HONE_ASSIGN_OR_RETURN(const SplitLoops split, sketch.Split(tasks, size, schedule::Tail::kShift));
  return sketch.Do(schedule::Annotate{split.outer, ir::LoopKind::kParallel});
}

}  // namespace

absl::Status ScheduleElementwise(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  if (s.axes.empty()) return absl::OkStatus();
  const int64_t elements = ir::NumElements(*s.buffer);
  const int64_t most = sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype)));
  const std::string prefix = stage + ".";
  const size_t keep = IsFlat(s) ? 0 : 1;  // how many innermost axes are not fused with the others
  std::vector<std::string> cases = keep == 0 ? std::vector<std::string>() : CaseAxes(s);
  if (cases.size() + 1 >= s.axes.size()) cases.clear();  // threads need a loop that is not unrolled
  if (const std::optional<Across> across = AxesAcross(s); across.has_value() && cases.empty()) {
    if (sketch.chooser.OneOf(prefix + "across", {0, 1}, 1) == 1) {
      HONE_ASSIGN_OR_RETURN(const std::string tasks, TileAcross(sketch, s, *across, most));
      return SplitAmongThreads(sketch, prefix, tasks, elements);
    }
  }
  HONE_ASSIGN_OR_RETURN(const std::string outer, FuseOuter(sketch, s, cases, keep));
  const bool apart = keep == 1 && s.axes.size() > 1;
  const std::string inner = apart ? s.axes.back().name : outer;
  const int64_t inner_extent = apart ? s.axes.back().extent.max() : elements;
  std::string tasks = outer;
  const int64_t width = std::min(most, PowerOf2Ceil(inner_extent));
  const int64_t unroll = sketch.chooser.OneOf(prefix + "vectors", {1, 2, 4}, 1);
  if (width > 1) {
    HONE_ASSIGN_OR_RETURN(const SplitLoops vector, sketch.Split(inner, width, sketch.TailOf(inner, width)));
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{vector.inner, ir::LoopKind::kVectorized}));
    std::string vectors = vector.outer;
    if (unroll > 1 && inner_extent >= width * unroll) {
      HONE_ASSIGN_OR_RETURN(const SplitLoops several, sketch.Split(vectors, unroll, schedule::Tail::kShift));
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::Annotate{several.inner, ir::LoopKind::kUnrolled}));
      vectors = several.outer;
    }
    if (!apart) {
      tasks = vectors;
    } else if (cases.empty()) {
      HONE_ASSIGN_OR_RETURN(tasks, FuseForThreads(sketch, outer, vectors, elements));
    }
  }
  return SplitAmongThreads(sketch, prefix, tasks, elements);
}

}  // namespace hone::space
