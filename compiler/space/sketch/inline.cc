#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"

namespace hone::space {
namespace {

using schedule::Nest;

constexpr int kCheapNodes = 12;  // as cheap to repeat as to load
constexpr int kMaxNodes = 400;   // beyond, an inlined expression costs more compile time than it saves

// A value moved, perhaps converted, but not computed: a transposition, a slice, a broadcast.
bool IsMove(const ir::Expr& e) {
  if (const ir::Cast* cast = e.As<ir::Cast>()) return IsMove(cast->value);
  return e.As<ir::Load>() != nullptr || e.As<ir::FloatImm>() != nullptr || e.As<ir::IntImm>() != nullptr;
}

bool ReadsSelf(const Nest& reader, const Nest& stage) {
  return schedule::Reads(reader.stage, stage.stage.buffer.get());
}

bool LoadsFrom(const ir::Expr& e, const ir::BufferNode* buffer) {
  bool found = false;
  ir::ForEachExpr(e, [&](const ir::Expr& child) {
    const auto* load = child.As<ir::Load>();
    found = found || (load != nullptr && (buffer == nullptr || load->buffer.get() == buffer));
  });
  return found;
}

// Whether the place of an element says that it is one of the buffer, as in a concatenation.
bool IsPartOf(const ir::Expr& e, const ir::BufferNode* buffer) {
  bool found = false;
  ir::ForEachExpr(e, [&](const ir::Expr& child) {
    const auto* select = child.As<ir::Select>();
    if (select == nullptr || LoadsFrom(select->condition, nullptr)) return;
    found = found || LoadsFrom(select->on_true, buffer) || LoadsFrom(select->on_false, buffer);
  });
  return found;
}

bool ShouldInline(const schedule::State& state, const Nest& nest) {
  if (nest.stage.reduction != ir::Reduction::kNone || nest.prepared || state.IsOutput(nest.stage.buffer.get()))
    return false;
  if (IsMove(nest.stage.value)) return true;
  const int loads = CountLoads(state, nest.stage.buffer.get());
  const int nodes = CountNodes(nest.stage.value);
  for (const Nest& reader : state.nests) {
    if (!ReadsSelf(reader, nest)) continue;
    // Inside a reduction each element would be computed once per use.
    if (reader.stage.reduction != ir::Reduction::kNone) return false;
    if (CountNodes(reader.stage.value) + loads * nodes > kMaxNodes) return false;
    // Vectors compute all parts for every element: too much where functions make them.
    if (HasCall(nest.stage.value) && IsPartOf(reader.stage.value, nest.stage.buffer.get())) return false;
  }
  return loads <= 1 || (!HasCall(nest.stage.value) && nodes <= kCheapNodes && loads <= 4);
}

}  // namespace

absl::Status InlineStages(Sketch& sketch) {
  for (bool changed = true; changed;) {
    changed = false;
    // Last first: an inlined stage's own producers then see how often they are really read.
    for (size_t i = sketch.state.nests.size(); i-- > 0;) {
      const Nest& nest = sketch.state.nests[i];
      if (!ShouldInline(sketch.state, nest)) continue;
      const std::string name = nest.stage.buffer->name;
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::Inline{name}));
      changed = true;
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::space
