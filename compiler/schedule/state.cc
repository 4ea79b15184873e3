// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/schedule/instruction.h"

namespace hone::schedule {

Nest* State::FindNest(std::string_view stage) {
  for (Nest& nest : nests) {
    if (nest.stage.buffer->name == stage) return &nest;
  }
  return nullptr;
}
const Nest* State::FindNest(std::string_view stage) const { return const_cast<State*>(this)->FindNest(stage); }

const Nest* State::FindNest(const ir::BufferNode* buffer) const {
  for (const Nest& nest : nests) {
    if (nest.stage.buffer.get() == buffer) return &nest;
  }
  return nullptr;
}

Nest* State::FindLoop(std::string_view loop, size_t* position) {
  for (Nest& nest : nests) {
    for (size_t i = 0; i < nest.loops.size(); ++i) {
      if (nest.loops[i].name == loop) {
        *position = i;
        return &nest;
      }
    }
  }
  return nullptr;
}

bool State::IsOutput(const ir::BufferNode* buffer) const {
  return std::any_of(outputs.begin(), outputs.end(), [&](const ir::Buffer& b) { return b.get() == buffer; });
}

ir::Ranges State::LoopRanges() const {
  ir::Ranges ranges = ir::SizeRanges(sizes);
  for (const Nest& nest : nests) {
    for (const Loop& loop : nest.loops) ranges[loop.name] = {0, loop.max_extent - 1};
  }
  return ranges;
}

std::optional<ir::Size> State::IterationsOf(const Loop& loop) const {
  if (const ir::IntImm* extent = loop.extent.As<ir::IntImm>()) return extent->value;
  if (!IsOpen(loop.extent)) return std::nullopt;
  return ir::ToSize(loop.extent, sizes);
}

bool State::IsOpen(const ir::Expr& e) const {
  return std::ranges::any_of(sizes, [&](const ir::OpenSize& size) { return ir::UsesVar(e, size.name); });
}

bool Nest::HasLoop(ir::LoopKind kind) const {
  return std::any_of(loops.begin(), loops.end(), [&](const Loop& l) { return l.kind == kind; });
}

const Loop* Nest::LaneReduceLoop() const {
  const auto merged =
      std::ranges::find_if(loops, [](const Loop& l) { return l.reduce && l.kind == ir::LoopKind::kLane; });
  return merged == loops.end() ? nullptr : &*merged;
}

size_t Nest::InstructionLoops() const {
  if (!instruction.has_value()) return 0;
  return static_cast<size_t>(std::ranges::count_if(RequiredLoops(ir::EntryOf(*instruction)),
                                                   [](const RequiredLoop& loop) { return loop.extent > 1; }));
}

bool Nest::IsBulkCopied() const {
  return copy.groups > 1 || copy.elements * ir::SizeOf(stage.buffer->dtype) > std::ranges::max(ir::kCopyBytes);
}
size_t Nest::StatementLoops() const {
  if (stage.reduction == ir::Reduction::kOrder) return 2;  // over the places and the values
  return copy.elements > 1 ? 1 : InstructionLoops();
}

bool State::IsBound() const {
  return std::any_of(nests.begin(), nests.end(),
                     [](const Nest& n) { return n.HasLoop(ir::LoopKind::kGroup) || n.HasLoop(ir::LoopKind::kLane); });
}

Nest MakeNest(ir::Stage stage) {
  Nest nest;
  for (const ir::Axis& axis : stage.axes) {
    nest.loops.push_back({axis.name, ir::Expr(axis.extent), axis.extent.max(), ir::LoopKind::kSerial, false});
  }
  for (const ir::Axis& axis : stage.reduce_axes) {
    nest.loops.push_back({axis.name, ir::Expr(axis.extent), axis.extent.max(), ir::LoopKind::kSerial, true});
  }
  for (const Loop& loop : nest.loops) nest.bindings[loop.name] = ir::MakeVar(loop.name);
  nest.storage.shape = stage.buffer->shape;
  nest.stage = std::move(stage);
  return nest;
}

State InitialState(const ir::Workload& workload) {
  State state{workload.op, workload.sizes, workload.params, workload.outputs, {}};
  for (const ir::Stage& stage : workload.stages) state.nests.push_back(MakeNest(stage));
  return state;
}

absl::Status CheckLoopCanChange(const Nest& nest, size_t position) {
  if (position + nest.StatementLoops() < nest.loops.size()) return absl::OkStatus();
  if (nest.stage.reduction == ir::Reduction::kOrder) {
    return absl::FailedPreconditionError(fmt::format("loop {} is a part of a sort", nest.loops[position].name));
  }
  return absl::FailedPreconditionError(
      fmt::format("loop {} is a part of {}", nest.loops[position].name,
                  nest.instruction.has_value() ? fmt::format("instruction {}", ir::EntryOf(*nest.instruction).name)
                                               : fmt::format("a copy of {} elements", nest.copy.elements)));
}

absl::Status CheckNoStageAtLoop(const State& state, const Nest& nest, size_t position) {
  if (absl::Status status = CheckLoopCanChange(nest, position); !status.ok()) return status;
  if (!nest.prefetches.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("loop {} must not change, because the prefetches of stage {} depend on it",
                    nest.loops[position].name, nest.stage.buffer->name));
  }
  for (const Nest& other : state.nests) {
    if (other.place.stage != nest.stage.buffer->name) continue;
    for (size_t i = position; i < nest.loops.size(); ++i) {
      if (nest.loops[i].name != other.place.loop) continue;
      return absl::FailedPreconditionError(
          fmt::format("loop {} must not change, because it is or encloses loop {}, at which stage {} is computed",
                      nest.loops[position].name, other.place.loop, other.stage.buffer->name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUnscheduled(const State& state, const Nest& nest) {
  const std::string& stage = nest.stage.buffer->name;
  if (nest.stage.reduction == ir::Reduction::kOrder) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is a sort; it can be neither replaced nor placed", stage));
  }
  if (nest.has_loop_steps || !nest.IsTopLevel()) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is scheduled already; put this step before the other steps on it", stage));
  }
  for (const Nest& other : state.nests) {
    if (other.place.stage != stage) continue;
    return absl::FailedPreconditionError(
        fmt::format("stage {} is computed inside stage {} already: place consumers before producers",
                    other.stage.buffer->name, stage));
  }
  return absl::OkStatus();
}

namespace {

// How many copies of the nest's storage exist: one per pipeline buffer.
int64_t Buffers(const State& state, const Nest& nest) {
  if (nest.copy.elements == 0 || nest.IsTopLevel()) return 1;
  for (const Loop& loop : state.FindNest(nest.place.stage)->loops) {
    if (loop.name == nest.place.loop) return loop.buffers;
  }
  return 1;
}

}  // namespace

ir::Shape StoredShape(const State& state, const Nest& nest) {
  ir::Shape shape = nest.storage.shape;
  if (!shape.empty()) shape[shape.size() - static_cast<size_t>(nest.storage.pad_dims)] += nest.storage.pad;
  if (const int64_t buffers = Buffers(state, nest); buffers > 1) shape.insert(shape.begin(), buffers);
  return shape;
}

std::vector<ir::Expr> StoredIndices(const State& state, const Nest& nest, std::vector<ir::Expr> indices) {
  if (nest.IsTopLevel()) return indices;
  for (size_t d = 0; d < indices.size(); ++d) indices[d] = indices[d] - nest.storage.origin[d];
  if (const int64_t buffers = Buffers(state, nest); buffers > 1) {
    indices.insert(indices.begin(), ir::FloorMod(ir::MakeVar(nest.place.loop), ir::Expr(buffers)));
  }
  return indices;
}

std::vector<ir::Expr> Vars(const std::vector<ir::Axis>& axes) {
  std::vector<ir::Expr> vars;
  for (const ir::Axis& axis : axes) vars.push_back(ir::MakeVar(axis.name));
  return vars;
}

ir::Stage CopyStage(const std::string& name, const ir::Buffer& buffer) {
  ir::Stage stage;
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    stage.axes.push_back({fmt::format("{}_{}", name, d), buffer->shape[d]});
  }
  stage.buffer = ir::MakeBuffer(name, buffer->dtype, buffer->shape);
  stage.value = ir::MakeLoad(buffer, Vars(stage.axes));
  return stage;
}

ir::Buffer FindLoadedBuffer(const ir::Stage& stage, std::string_view name) {
  ir::Buffer found;
  ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
    const ir::Load* load = e.As<ir::Load>();
    if (load != nullptr && load->buffer->name == name) found = load->buffer;
  });
  return found;
}

absl::StatusOr<ir::Buffer> FindCopySource(const State& state, const Nest& nest, std::string_view name) {
  ir::Buffer source = FindLoadedBuffer(nest.stage, name);
  if (source == nullptr) {
    return absl::FailedPreconditionError(fmt::format("stage {} does not read {}", nest.stage.buffer->name, name));
  }
  if (source == nest.stage.buffer) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is a scan; what it reads of itself cannot be copied", name));
  }
  const Nest* made = state.FindNest(source.get());
  if (made != nullptr && !made->IsTopLevel()) {
    return absl::FailedPreconditionError(fmt::format(
        "stage {} is computed inside loop {} already; put the step that copies it before", name, made->place.loop));
  }
  return source;
}

absl::Status ReadCastsFromCopy(State& state, Nest& reader, const ir::Buffer& source, ir::Stage copy,
                               const std::function<ir::Expr(const ir::Type& cast, const ir::Expr& copied)>& replaced,
                               std::string_view wanted) {
  Nest nest = MakeNest(std::move(copy));
  nest.prepared = IsFixed(state, source.get());
  const ir::ExprFn read = [&](const ir::Expr& e) {
    const ir::Cast* cast = e.As<ir::Cast>();
    const ir::Load* load = cast == nullptr ? nullptr : cast->value.As<ir::Load>();
    if (load != nullptr && load->buffer == source) {
      const ir::Expr value = replaced(cast->type, ir::MakeLoad(nest.stage.buffer, load->indices));
      if (value.defined()) return value;
    }
    return ir::MapChildren(e, read);
  };
  reader.stage.value = read(reader.stage.value);
  if (Reads(reader.stage, source.get())) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} uses {} for more than {}", reader.stage.buffer->name, source->name, wanted));
  }
  state.nests.insert(state.nests.begin() + (&reader - state.nests.data()), std::move(nest));
  return absl::OkStatus();
}

bool IsFixed(const State& state, const ir::BufferNode* buffer) {
  for (const ir::Param& param : state.params) {
    if (param.buffer.get() == buffer) return param.kind == ir::ParamKind::kConstant;
  }
  const Nest* nest = state.FindNest(buffer);
  return nest != nullptr && nest->prepared;
}

bool Reads(const ir::Stage& stage, const ir::BufferNode* buffer) {
  bool reads = false;
  ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
    const ir::Load* load = e.As<ir::Load>();
    reads |= load != nullptr && load->buffer.get() == buffer;
  });
  return reads;
}

ir::Ranges AxisRanges(const ir::Stage& stage) {
  ir::Ranges ranges;
  for (const std::vector<ir::Axis>* axes : {&stage.axes, &stage.reduce_axes}) {
    for (const ir::Axis& axis : *axes) {
      ranges[axis.name] = {0, axis.extent.max() - 1};
      axis.extent.ForEachSymbol([&](const ir::OpenSize& size) { ranges[size.name] = {size.min, size.max}; });
    }
  }
  return ranges;
}

ir::Linear LinearPlaceOf(const ir::Load& load, const ir::Ranges& ranges) {
  std::vector<ir::Expr> indices;
  for (const ir::Expr& index : load.indices) indices.push_back(ir::Simplify(index, ranges));
  return ir::ToLinear(*load.buffer, indices, ranges);
}

bool IsAlwaysBelow(const ir::Expr& index, const ir::Size& size, const ir::Ranges& ranges) {
  if (size.IsFixed()) return ir::BoundsOf(index, ranges).high < size.value();
  return ir::BoundsOf(index - ir::Expr(size), ranges).high < 0 || ir::BoundsOf(index, ranges).high < size.min();
}

ir::Expr MakeInt(ir::Type type, const ir::Size& value) {
  return value.IsFixed() ? ir::MakeInt(type, value.value()) : ir::MakeCast(type, ir::Expr(value));
}

void CollectConditions(const ir::Expr& c, std::vector<ir::Expr>* conditions) {
  const ir::Binary* both = c.As<ir::Binary>();
  if (both == nullptr || both->op != ir::BinaryOp::kAnd) {
    conditions->push_back(c);
    return;
  }
  CollectConditions(both->a, conditions);
  CollectConditions(both->b, conditions);
}

ir::Expr ReplaceLoads(const ir::Expr& e, const ir::BufferNode* from,
                      const std::function<ir::Expr(const std::vector<ir::Expr>&)>& replacement) {
  const ir::Expr mapped = ir::MapChildren(e, [&](const ir::Expr& c) { return ReplaceLoads(c, from, replacement); });
  const ir::Load* load = mapped.As<ir::Load>();
  return load != nullptr && load->buffer.get() == from ? replacement(load->indices) : mapped;
}

ir::Expr ProtectLoads(const ir::Expr& e, const ir::VarMap& inside, const ir::Ranges& ranges) {
  const ir::Expr mapped =
      ir::MapChildren(e, [&](const ir::Expr& child) { return ProtectLoads(child, inside, ranges); });
  const ir::Load* load = mapped.As<ir::Load>();
  if (load == nullptr) return mapped;
  bool safe = true;
  ir::Expr condition;
  for (size_t d = 0; d < load->indices.size(); ++d) {
    safe = safe && ir::BoundsOf(load->indices[d], ranges).low >= 0 &&
           IsAlwaysBelow(load->indices[d], load->buffer->shape[d], ranges);
  }
  if (safe) return mapped;
  for (const auto& [axis, within] : inside) {
    const bool along = std::any_of(load->indices.begin(), load->indices.end(),
                                   [&](const ir::Expr& index) { return ir::UsesVar(index, axis); });
    if (along) condition = condition.defined() ? condition && within : within;
  }
  return condition.defined() ? ir::MakeSelect(condition, mapped, ir::MakeZero(mapped.type())) : mapped;
}

bool IsLoadInBounds(const State& state, const Nest& nest, const ir::Load& load) {
  const ir::Ranges ranges = state.LoopRanges();
  const Nest* source = state.FindNest(load.buffer.get());
  const bool placed = source != nullptr && !source->IsTopLevel();
  for (size_t d = 0; d < load.indices.size(); ++d) {
    ir::Expr index = ir::Substitute(load.indices[d], nest.bindings);
    if (placed) index = ir::Simplify(index - source->storage.origin[d], ranges);
    const ir::Size& extent = (placed ? source->storage.shape : load.buffer->shape)[d];
    if (ir::BoundsOf(index, ranges).low < 0 || !IsAlwaysBelow(index, extent, ranges)) return false;
  }
  return true;
}

}  // namespace hone::schedule
