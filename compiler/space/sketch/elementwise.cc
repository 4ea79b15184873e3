#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

// Below this many elements handing work to another thread costs more than it saves.
constexpr int64_t kSerialElements = 16384;

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

}  // namespace

absl::Status ScheduleElementwise(Sketch& sketch, const std::string& stage) {
  const ir::Stage s = sketch.Get(stage).stage;
  if (s.axes.empty()) return absl::OkStatus();
  const int64_t elements = ir::NumElements(*s.buffer);
  const int64_t most = sketch.target.VectorWidth(std::max(4, ir::SizeOf(s.buffer->dtype)));
  const std::string prefix = stage + ".";
  const size_t keep = IsFlat(s) ? 0 : 1;  // how many inner axes stay apart from the fused ones
  std::string outer = s.axes[0].name;
  for (size_t i = 1; i + keep < s.axes.size(); ++i) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Fuse{outer, s.axes[i].name}));
    outer += "_" + s.axes[i].name;
  }
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

}  // namespace hone::space
