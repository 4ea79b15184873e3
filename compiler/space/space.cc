#include "compiler/space/space.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/passes/pipeline.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

using schedule::Nest;

enum SpaceKind : int64_t { kSketch = 0, kTemplate = 1 };

// The reader with which a reduction can share register tiles: its only one, element-wise, in place, not taken yet.
std::string TileReader(const schedule::State& state, const Nest& nest, const std::vector<std::string>& taken) {
  if (state.IsOutput(nest.stage.buffer.get())) return "";
  const std::vector<std::string> readers = Readers(state, nest.stage.buffer.get());
  if (readers.size() != 1 || std::find(taken.begin(), taken.end(), readers[0]) != taken.end()) return "";
  const Nest* reader = state.FindNest(readers[0]);
  if (reader->stage.reduction != ir::Reduction::kNone || reader->prepared || reader->touched) return "";
  return ReadsInPlace(reader->stage, nest.stage.buffer) ? readers[0] : "";
}

std::vector<std::string> StageNames(const schedule::State& state, bool reductions) {
  std::vector<std::string> names;
  for (const Nest& nest : state.nests) {
    if ((nest.stage.reduction != ir::Reduction::kNone) == reductions) names.push_back(nest.stage.buffer->name);
  }
  return names;
}

// Every reduction in register tiles with its reader, or with a copy of its own; then everything that is left.
absl::Status ScheduleStages(Sketch& sketch, bool pack) {
  std::vector<std::string> taken;
  int index = 0;
  for (const std::string& stage : StageNames(sketch.state, true)) {
    const Nest& nest = sketch.Get(stage);
    std::string reader = TileReader(sketch.state, nest, taken), reduction = stage;
    if (reader.empty()) {
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::CacheWrite{stage}));
      reader = stage;
      reduction = stage + "c";
    }
    taken.push_back(reader);
    const std::string prefix = index++ == 0 ? "" : stage + ".";
    HONE_RETURN_IF_ERROR(ScheduleRegisterTile(sketch, reader, reduction, prefix, pack));
  }
  for (const std::string& stage : StageNames(sketch.state, false)) {
    const Nest& nest = sketch.Get(stage);
    if (nest.AtRoot() && !nest.touched && !nest.prepared) HONE_RETURN_IF_ERROR(ScheduleElementwise(sketch, stage));
  }
  return absl::OkStatus();
}

// Whether packed operands and register tiles have anything to work on: a sum of products.
bool IsContraction(const ir::Workload& workload) {
  return std::any_of(workload.stages.begin(), workload.stages.end(), [](const ir::Stage& s) {
    const ir::Binary* product = s.value.As<ir::Binary>();
    if (s.reduction != ir::Reduction::kSum || product == nullptr || product->op != ir::BinaryOp::kMul) return false;
    const std::vector<ir::Load> loads = LoadsOf(s);
    return loads.size() == 2 && loads[0].buffer != loads[1].buffer;
  });
}

bool IsEmpty(const ir::Workload& workload) {
  return std::any_of(workload.stages.begin(), workload.stages.end(), [](const ir::Stage& s) {
    return std::any_of(s.axes.begin(), s.axes.end(), [](const ir::Axis& a) { return a.extent == 0; }) ||
           std::any_of(s.reduce_axes.begin(), s.reduce_axes.end(), [](const ir::Axis& a) { return a.extent == 0; });
  });
}

absl::Status Fill(const ir::Workload& workload, Sketch& sketch) {
  if (IsEmpty(workload)) return absl::OkStatus();  // nothing to make fast
  const bool contraction = IsContraction(workload);
  const bool pack = contraction && sketch.chooser.OneOf("space", {kSketch, kTemplate}, kTemplate) == kTemplate;
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  if (!contraction) {
    HONE_ASSIGN_OR_RETURN(const bool rows, ScheduleRows(sketch));
    if (rows) return absl::OkStatus();
  }
  return ScheduleStages(sketch, pack);
}

}  // namespace

absl::StatusOr<Candidate> Build(const ir::Workload& workload, const codegen::Target& target, Chooser& chooser) {
  Sketch sketch{schedule::Start(workload), target, chooser, {}};
  HONE_RETURN_IF_ERROR(Fill(workload, sketch));
  return Candidate{chooser.decisions(), std::move(sketch.steps), std::move(sketch.state)};
}

absl::StatusOr<Candidate> Default(const ir::Workload& workload, const codegen::Target& target) {
  // A preferred decision that cannot be lowered would be a flaw of a rule; plainer schedules are there for everyone
  // meanwhile.
  const Decisions sketch = {{"space", kSketch, {}}};
  for (const Decisions* given : {static_cast<const Decisions*>(nullptr), &sketch}) {
    Chooser chooser(given);
    auto candidate = Build(workload, target, chooser);
    if (candidate.ok() && passes::Lower(candidate->state, "probe").ok()) return candidate;
  }
  return Candidate{{}, {}, schedule::Start(workload)};
}

}  // namespace hone::space
