// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/sketch/inline.h"

#include <algorithm>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/lanes.h"

namespace hone::space {
namespace {

using schedule::Nest;

constexpr int kCheapNodesMax = 12;     // expression nodes that are as cheap to compute again as to load
constexpr int kInlinedNodesMax = 400;  // nodes beyond which an inlined expression costs more compile time than it saves

// Whether the value is only moved or converted, as in a transposition, a slice or a broadcast.
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

// Whether a select by position, as in a concatenation, decides if the value comes from the buffer.
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
    // A reduction would compute each element once per use.
    if (reader.stage.reduction != ir::Reduction::kNone) return false;
    if (CountNodes(reader.stage.value) + loads * nodes > kInlinedNodesMax) return false;
    // Vector code computes both sides of a select for every element, which is too expensive for function calls.
    if (HasCall(nest.stage.value) && IsPartOf(reader.stage.value, nest.stage.buffer.get())) return false;
  }
  return loads <= 1 || (!HasCall(nest.stage.value) && nodes <= kCheapNodesMax && loads <= 4);
}

// Whether the reader uses each element of the buffer for at most one result.
bool ReadsOnce(const ir::Stage& reader, const ir::BufferNode* buffer) {
  const ir::Ranges ranges = AxisRanges(reader);
  return std::ranges::all_of(LoadsOf(reader), [&](const ir::Load& load) {
    return load.buffer.get() != buffer || std::ranges::all_of(reader.axes, [&](const ir::Axis& axis) {
             return axis.extent == 1 || StrideOf(load, axis.name, ranges).value_or(0) != 0;
           });
  });
}

// Whether computing the stage again costs no more than loading its result: the expression is cheap, and at most one
// operand is more than half as large as the result.
bool IsLoadedAsCheaply(const ir::Stage& stage) {
  const auto large = std::ranges::count_if(LoadsOf(stage), [&](const ir::Load& load) {
    return 2 * ir::NumElements(*load.buffer) > ir::NumElements(*stage.buffer);
  });
  return large <= 1 && !HasCall(stage.value) && CountNodes(stage.value) <= kCheapNodesMax;
}

// Whether the stage would be an element-wise launch of its own: no reduction, at the top level, untouched, no output.
bool IsOwnLaunch(const schedule::State& state, const Nest& nest) {
  const bool computes = nest.stage.reduction == ir::Reduction::kNone && !nest.prepared && nest.IsTopLevel();
  return computes && !nest.has_loop_steps && !state.IsOutput(nest.stage.buffer.get());
}

bool ShouldRepeat(const schedule::State& state, const Nest& nest) {
  if (!IsOwnLaunch(state, nest) || !IsLoadedAsCheaply(nest.stage)) return false;
  return std::ranges::all_of(state.nests, [&](const Nest& reader) {
    return !ReadsSelf(reader, nest) || ReadsOnce(reader.stage, nest.stage.buffer.get());
  });
}

// Whether the stage pads: inside some bounds it moves elements of one buffer, outside them it has a constant or a
// loaded scalar.
bool IsPadding(const ir::Stage& stage) {
  const ir::Expr* value = &stage.value;
  while (const ir::Cast* cast = value->As<ir::Cast>()) value = &cast->value;
  const ir::Select* select = value->As<ir::Select>();
  if (select == nullptr || LoadsFrom(select->condition, nullptr)) return false;
  const auto moved =
      std::ranges::count_if(LoadsOf(stage), [](const ir::Load& load) { return ir::NumElements(*load.buffer) > 1; });
  return moved == 1 && IsMove(select->on_true) && IsMove(select->on_false);
}

// Whether every reader can check the bounds itself. A window repeats the check in each of its steps, so the window must
// be short. A touched reader without reduction may be a copy, and copies have no conditions.
bool ShouldPadInPlace(const schedule::State& state, const Nest& nest) {
  if (!IsOwnLaunch(state, nest) || !IsPadding(nest.stage)) return false;
  return std::ranges::all_of(state.nests, [&](const Nest& reader) {
    if (!ReadsSelf(reader, nest)) return true;
    const bool may_ask = reader.stage.reduction != ir::Reduction::kNone || !reader.has_loop_steps;
    return may_ask && ReduceSteps(reader.stage) <= kUnrolledStepsMax &&
           ReadsOnce(reader.stage, nest.stage.buffer.get());
  });
}

// Inlines stages until `should` holds for none.
absl::Status InlineAll(Sketch& sketch, bool (*should)(const schedule::State& state, const Nest& nest)) {
  for (bool changed = true; changed;) {
    changed = false;
    // The last stage goes first: inlining it may add loads of its producers, and their checks must count those.
    for (size_t i = sketch.state.nests.size(); i-- > 0;) {
      const Nest& nest = sketch.state.nests[i];
      if (!should(sketch.state, nest)) continue;
      const std::string name = nest.stage.buffer->name;
      HONE_RETURN_IF_ERROR(sketch.Do(schedule::Inline{name}));
      changed = true;
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InlineStages(Sketch& sketch) { return InlineAll(sketch, ShouldInline); }
absl::Status InlineRepeated(Sketch& sketch) { return InlineAll(sketch, ShouldRepeat); }
absl::Status InlinePadding(Sketch& sketch) { return InlineAll(sketch, ShouldPadInPlace); }

}  // namespace hone::space
