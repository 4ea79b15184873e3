// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/build_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/digest.h"
#include "base/status.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/text.h"
#include "compiler/passes/order_loops.h"
#include "compiler/schedule/copy.h"
#include "compiler/schedule/grid.h"
#include "compiler/schedule/instruction.h"

namespace hone::passes {
namespace {

using schedule::Loop;
using schedule::Nest;
using schedule::State;

// Whether the kernel itself reads the prepared stage, so that its buffer must be kept.
bool IsReadByKernel(const State& state, const Nest& prepared) {
  return std::any_of(state.nests.begin(), state.nests.end(), [&](const Nest& reader) {
    return !reader.prepared && schedule::Reads(reader.stage, prepared.stage.buffer.get());
  });
}

class LoopBuilder {
 public:
  explicit LoopBuilder(const State& state) : state_(state) {
    for (const Nest& nest : state.nests) {
      const ir::Buffer& buffer = nest.stage.buffer;
      if (state.IsOutput(buffer.get()) || (nest.prepared && IsReadByKernel(state, nest))) {
        storage_[buffer.get()] = buffer;
      } else {
        storage_[buffer.get()] =
            ir::MakeBuffer(buffer->name, buffer->dtype, schedule::StoredShape(state, nest), nest.storage.scope);
      }
      if (nest.stage.reduction == ir::Reduction::kOrder) spare_[&nest] = SpareLines(nest.stage);
    }
  }

  // The first instruction or copy that cannot be built. Valid after BuildTopLevel.
  const absl::Status& status() const { return status_; }

  ir::Stmt BuildTopLevel(bool prepared) {
    std::vector<ir::Stmt> stmts;
    std::vector<ir::Buffer> temporaries;
    for (const Nest& nest : state_.nests) {
      if (!nest.IsTopLevel() || nest.prepared != prepared) continue;
      const ir::Buffer& buffer = storage_.at(nest.stage.buffer.get());
      if (buffer->scope == ir::Scope::kWorkspace) temporaries.push_back(buffer);
      if (const auto spare = spare_.find(&nest); spare != spare_.end()) {
        temporaries.insert(temporaries.end(), spare->second.begin(), spare->second.end());
      }
      stmts.push_back(BuildStage(nest));
    }
    if (stmts.empty()) return {};
    ir::Stmt body = ir::MakeBlock(std::move(stmts));
    for (const ir::Buffer& buffer : temporaries) body = ir::MakeAlloc(buffer, body);
    return body;
  }

 private:
  // The position where the accumulators are initialized: before the first reduction loop and before the instruction.
  static size_t FirstReduction(const Nest& nest) {
    const auto it = std::find_if(nest.loops.begin(), nest.loops.end(), [](const Loop& l) { return l.reduce; });
    return std::min(static_cast<size_t>(it - nest.loops.begin()), nest.loops.size() - nest.StatementLoops());
  }

  ir::Stmt BuildStage(const Nest& nest) {
    std::vector<ir::Stmt> stmts = {BuildInside(nest, 0)};
    if (HasAsyncMma(nest) && FindMmaWaitPlace(nest).loop == nullptr) stmts.push_back(ir::MakeMmaWait(0));
    return ir::MakeBlock(std::move(stmts), nest.stage.buffer->name);
  }

  // Whether the nest's instruction runs asynchronously, as wgmma does.
  static bool HasAsyncMma(const Nest& nest) {
    return nest.instruction.has_value() && ir::EntryOf(*nest.instruction).is_async;
  }

  // The place of the wait for asynchronous instructions: at the end of each iteration of `loop`, until at most
  // `pending` commit groups are left in flight.
  struct MmaWaitPlace {
    const Loop* loop = nullptr;  // null: once, at the end of the nest
    int64_t pending = 0;
  };
  // Chooses the loop of the wait: the pipelined loop whose iterations the instructions may outlast, else the innermost
  // serial loop. If lanes load an operand into registers (loads_a), the same registers are filled again one iteration
  // of the pipelined loop later. The wait then moves to its innermost reduction loop and leaves one group fewer in
  // flight than an iteration has.
  static MmaWaitPlace FindMmaWaitPlace(const Nest& nest) {
    const std::span loops = std::span(nest.loops).first(nest.loops.size() - nest.StatementLoops());
    const auto serial = [](const Loop& loop) { return loop.kind == ir::LoopKind::kSerial; };
    const auto outlasted = std::ranges::find_if(loops, [](const Loop& loop) { return loop.async_iterations > 0; });
    if (outlasted == loops.end()) {
      const auto last = std::find_if(loops.rbegin(), loops.rend(), serial);
      return {last == loops.rend() ? nullptr : &*last, 0};
    }
    if (!ir::EntryOf(*nest.instruction).loads_a) return {&*outlasted, outlasted->async_iterations};
    const Loop* last = &*outlasted;
    int64_t commit_groups = 1, since = 1;  // commit groups of one iteration
    for (auto loop = outlasted + 1; loop != loops.end(); ++loop) {
      since *= loop->max_extent;
      if (!loop->reduce) continue;
      last = &*loop;
      commit_groups *= std::exchange(since, 1);
    }
    return {last, commit_groups - 1};
  }

  // Builds the part of the nest inside its loops [0, position).
  ir::Stmt BuildInside(const Nest& nest, size_t position) {
    std::vector<ir::Stmt> stmts;
    if (ir::Folds(nest.stage.reduction) && nest.LaneReduceLoop() == nullptr && position == FirstReduction(nest))
      stmts.push_back(Initialize(nest, position));
    for (const schedule::PrefetchShare& share : nest.prefetches) {
      if (position > 0 && nest.loops[position - 1].name == share.loop) stmts.push_back(BuildPrefetch(share));
    }
    const ir::Stmt inside = position == nest.loops.size() - nest.StatementLoops()
                                ? BuildInnermost(nest)
                                : BuildLoop(nest, nest.loops[position], BuildInside(nest, position + 1));
    stmts.push_back(SkipZeros(nest, position, inside));
    return ir::MakeBlock(std::move(stmts));
  }

  // Skips `s`, at depth `position`, where it would only add zeros. Only conditions on the outermost reduction loops are
  // tested, because further inside a test costs more than it saves.
  static ir::Stmt SkipZeros(const Nest& nest, size_t position, ir::Stmt s) {
    if (nest.conditions.contributes.empty() || position == 0 || nest.LaneReduceLoop() != nullptr) return s;
    const auto decides = [](const Loop& l) { return l.reduce && l.kind == ir::LoopKind::kSerial; };
    const auto first = nest.loops.begin() + static_cast<std::ptrdiff_t>(FirstReduction(nest));
    const auto end = std::find_if_not(first, nest.loops.end(), decides);
    ir::VarMap single;  // loops with one iteration, by the value 0
    for (const Loop& loop : nest.loops) {
      if (loop.max_extent == 1) single[loop.name] = ir::Expr(0);
    }
    for (const ir::Expr& condition : nest.conditions.contributes) {
      const ir::Expr here = ir::Substitute(ir::Substitute(condition, nest.bindings), single);
      const auto uses = [&](const Loop& l) { return ir::UsesVar(here, l.name); };
      const auto last = std::find_if(nest.loops.rbegin(), nest.loops.rend(), uses).base();
      if (last > first && last <= end && last == nest.loops.begin() + static_cast<std::ptrdiff_t>(position))
        s = ir::MakeIf(here, std::move(s));
    }
    return s;
  }

  ir::Stmt BuildPrefetch(const schedule::PrefetchShare& share) const {
    const auto storage = storage_.find(share.buffer.get());
    const ir::Stmt fetch =
        ir::MakePrefetch(storage == storage_.end() ? share.buffer : storage->second, share.first, share.count);
    return ir::MakeIf(share.number < ir::Expr(share.shares), fetch);
  }

  ir::Stmt BuildInnermost(const Nest& nest) {
    if (nest.LaneReduceLoop() != nullptr) return LaneReduce(nest);
    if (nest.stage.reduction == ir::Reduction::kOrder) return Guarded(nest, Order(nest));
    if (nest.copy.elements > 0) return Guarded(nest, Copy(nest));
    return Guarded(nest, nest.instruction.has_value() ? Instruction(nest) : Update(nest));
  }

  // The stages computed at the loop: those that are copied asynchronously, or all others.
  std::vector<const Nest*> Producers(const Nest& nest, const Loop& loop, bool copied) const {
    std::vector<const Nest*> producers;
    for (const Nest& producer : state_.nests) {
      if (producer.place.stage != nest.stage.buffer->name || producer.place.loop != loop.name) continue;
      if ((producer.copy.elements > 0) == copied) producers.push_back(&producer);
    }
    return producers;
  }

  ir::Stmt WithBuffers(const std::vector<const Nest*>& producers, ir::Stmt body) const {
    for (const Nest* producer : producers) {
      body = ir::MakeAlloc(storage_.at(producer->stage.buffer.get()), std::move(body));
    }
    return body;
  }

  // Builds the loop with the stages that are computed at it. Copies come first, since they read none of the other
  // stages.
  ir::Stmt BuildLoop(const Nest& nest, const Loop& loop, ir::Stmt inside) {
    const std::vector<const Nest*> copied = Producers(nest, loop, true), computed = Producers(nest, loop, false);
    std::vector<ir::Stmt> stmts;
    for (const Nest* producer : computed) stmts.push_back(BuildStage(*producer));
    stmts.push_back(std::move(inside));
    if (const MmaWaitPlace wait_place = FindMmaWaitPlace(nest); HasAsyncMma(nest) && wait_place.loop == &loop) {
      stmts.push_back(ir::MakeMmaWait(wait_place.pending));
    }
    ir::Stmt body = WithBuffers(computed, ir::MakeBlock(std::move(stmts)));
    if (copied.empty()) return ir::MakeFor(loop.name, loop.extent, loop.kind, std::move(body));
    if (loop.buffers > 1) return BuildPipelined(loop, copied, std::move(body));
    std::vector<ir::Stmt> filled;
    AppendCopies(loop, copied, ir::MakeVar(loop.name), &filled);
    filled.push_back(ir::MakeWait(0));
    filled.push_back(std::move(body));
    return ir::MakeFor(loop.name, loop.extent, loop.kind, WithBuffers(copied, ir::MakeBlock(std::move(filled))));
  }

  // Appends the copies for iteration `at` of the loop, if that iteration exists, and commits them as one group.
  void AppendCopies(const Loop& loop, const std::vector<const Nest*>& copied, const ir::Expr& at,
                    std::vector<ir::Stmt>* stmts) {
    const ir::Var* own = at.As<ir::Var>();
    for (const Nest* producer : copied) {
      ir::Stmt copies = BuildStage(*producer);
      if (own == nullptr) copies = GuardCopies(ir::Substitute(copies, {{loop.name, at}}), at < loop.extent);
      stmts->push_back(std::move(copies));
    }
    stmts->push_back(ir::MakeCommit());
  }

  // Puts the condition around each single copy in `s`. A barrier can then stand before all of them, outside the
  // condition.
  static ir::Stmt GuardCopies(const ir::Stmt& s, const ir::Expr& condition) {
    if (s.As<ir::Copy>() != nullptr) return ir::MakeIf(condition, s);
    return ir::MapChildren(
        s, [&](const ir::Stmt& child) { return GuardCopies(child, condition); }, [](const ir::Expr& e) { return e; });
  }

  // With n buffers the copies for iteration i + n - 1 are issued in iteration i, after those for i have arrived. A
  // barrier in between ensures that all lanes have read the buffer before it is refilled: one barrier per iteration. If
  // `async_iterations` iterations may still compute, their buffers are refilled that many iterations later, after the
  // wait for them.
  ir::Stmt BuildPipelined(const Loop& loop, const std::vector<const Nest*>& copied, ir::Stmt body) {
    const int64_t ahead = loop.buffers - 1 - loop.async_iterations;
    std::vector<ir::Stmt> stmts;
    for (int64_t i = 0; i < ahead; ++i) AppendCopies(loop, copied, ir::Expr(i), &stmts);
    std::vector<ir::Stmt> iteration = {ir::MakeWait(ahead - 1)};
    AppendCopies(loop, copied, ir::MakeVar(loop.name) + ir::Expr(ahead), &iteration);
    iteration.push_back(std::move(body));
    body = ir::MakeBlock(std::move(iteration));
    stmts.push_back(ir::MakeFor(loop.name, loop.extent, loop.kind, std::move(body)));
    if (loop.async_iterations > 0) stmts.push_back(ir::MakeMmaWait(0));
    // Bulk copies have few barrier objects: all must be free when the loop is entered again.
    if (schedule::HasBulkCopies(state_, *copied.front())) stmts.push_back(ir::MakeWait(0));
    return WithBuffers(copied, ir::MakeBlock(std::move(stmts)));
  }

  // Stores the identity of the reduction to every element that is reduced inside the loops [0, position).
  ir::Stmt Initialize(const Nest& nest, size_t position) const {
    ir::VarMap rename;
    std::vector<Loop> loops;
    schedule::InstructionLoops instruction;
    if (nest.instruction.has_value()) instruction = schedule::LoopsOf(nest, ir::EntryOf(*nest.instruction));
    for (size_t i = position; i < nest.loops.size(); ++i) {
      if (nest.loops[i].reduce) continue;
      loops.push_back(nest.loops[i]);
      loops.back().name += "z";
      if (nest.loops[i].name == instruction.m) loops.back().kind = ir::LoopKind::kUnrolled;
      if (nest.loops[i].name == instruction.n) loops.back().kind = ir::LoopKind::kVectorized;
      rename[nest.loops[i].name] = ir::MakeVar(loops.back().name);
    }
    const ir::Type type{nest.stage.buffer->dtype, 1};
    ir::Stmt stmt = Store(nest, ir::Identity(nest.stage.reduction, type), rename);
    for (const ir::Expr& guard : nest.conditions.guards) {
      const bool reduces = std::any_of(nest.loops.begin(), nest.loops.end(),
                                       [&](const Loop& l) { return l.reduce && ir::UsesVar(guard, l.name); });
      if (!reduces) stmt = ir::MakeIf(ir::Substitute(guard, rename), stmt);
    }
    for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
      stmt = ir::MakeFor(it->name, ir::Substitute(it->extent, rename), it->kind, stmt);
    }
    return stmt;
  }

  ir::Stmt Update(const Nest& nest) const {
    ir::Expr value = ReadStored(ir::Substitute(nest.stage.value, nest.bindings));
    if (nest.stage.reduction != ir::Reduction::kNone) {
      value = ir::Combine(nest.stage.reduction, ir::MakeLoad(storage_.at(nest.stage.buffer.get()), Indices(nest, {})),
                          value);
    }
    return Store(nest, value, {});
  }

  // Builds the lane reduction. All lanes must reach it, so the guards become its mask.
  ir::Stmt LaneReduce(const Nest& nest) const {
    ir::Expr mask;
    for (const ir::Expr& guard : nest.conditions.guards) mask = mask.defined() ? mask && guard : guard;
    const Loop& lane_loop = *nest.LaneReduceLoop();
    return ir::MakeLaneReduce({nest.stage.reduction,
                               ir::MakeLoad(storage_.at(nest.stage.buffer.get()), Indices(nest, {})), mask,
                               ir::MakeVar(lane_loop.name), lane_loop.max_extent,
                               ReadStored(ir::Substitute(nest.stage.value, nest.bindings))});
  }

  ir::Stmt Instruction(const Nest& nest) {
    const ir::Expr sum = ir::MakeLoad(storage_.at(nest.stage.buffer.get()), Indices(nest, {}));
    auto mma =
        schedule::BuildMma(nest, sum, state_.LoopRanges(), [&](const ir::Expr& load) { return ReadStored(load); });
    if (mma.ok()) return *std::move(mma);
    if (status_.ok()) status_ = Annotate(mma.status(), "stage " + nest.stage.buffer->name);
    return ir::MakeBlock({});
  }

  ir::Stmt Order(const Nest& nest) const {
    const Loop &places = nest.loops[nest.loops.size() - 2], &values = nest.loops.back();
    std::vector<ir::Expr> line = Indices(nest, {});
    line.pop_back();
    const ir::Expr value = ReadStored(ir::Substitute(nest.stage.value, nest.bindings));
    return OrderLine({.name = nest.stage.buffer->name,
                      .values = values.extent,
                      .places = places.extent,
                      .values_max = values.max_extent,
                      .value = [&](const ir::Expr& at) { return ir::Substitute(value, {{values.name, at}}); },
                      .ordered = storage_.at(nest.stage.buffer.get()),
                      .spare = spare_.at(&nest),
                      .line = std::move(line)});
  }

  ir::Stmt Copy(const Nest& nest) {
    auto copy = schedule::BuildCopy(state_, nest, storage_.at(nest.stage.buffer.get()),
                                    [&](const ir::Expr& load) { return ReadStored(load); });
    if (copy.ok()) return *std::move(copy);
    if (status_.ok()) status_ = Annotate(copy.status(), "stage " + nest.stage.buffer->name);
    return ir::MakeBlock({});
  }

  static ir::Stmt Guarded(const Nest& nest, ir::Stmt stmt) {
    for (const ir::Expr& guard : nest.conditions.guards) stmt = ir::MakeIf(guard, stmt);
    return stmt;
  }

  std::vector<ir::Expr> Indices(const Nest& nest, const ir::VarMap& rename) const {
    std::vector<ir::Expr> indices;
    for (const ir::Axis& axis : nest.stage.axes) indices.push_back(nest.bindings.at(axis.name));
    indices = schedule::StoredIndices(state_, nest, std::move(indices));
    for (ir::Expr& index : indices) index = ir::Substitute(index, rename);
    return indices;
  }

  ir::Stmt Store(const Nest& nest, ir::Expr value, const ir::VarMap& rename) const {
    return ir::MakeStore(storage_.at(nest.stage.buffer.get()), Indices(nest, rename), std::move(value));
  }

  // Replaces loads from stages by loads from the storage of these stages.
  ir::Expr ReadStored(const ir::Expr& e) const {
    const ir::Expr mapped = ir::MapChildren(e, [&](const ir::Expr& child) { return ReadStored(child); });
    const ir::Load* load = mapped.As<ir::Load>();
    if (load == nullptr) return mapped;
    const auto it = storage_.find(load->buffer.get());
    if (it == storage_.end()) return mapped;
    const Nest& nest = *state_.FindNest(load->buffer.get());
    return ir::MakeLoad(it->second, schedule::StoredIndices(state_, nest, load->indices));
  }

  const State& state_;
  std::map<const ir::BufferNode*, ir::Buffer> storage_;
  std::map<const Nest*, std::vector<ir::Buffer>> spare_;  // memory for the sorts
  absl::Status status_;
};

// Checks that a lane reduction is still the innermost loop, and that the target's shuffles span that many lanes.
absl::Status CheckLaneReduceLegal(const Nest& nest, const target::Target& target) {
  const Loop* const lane_loop = nest.LaneReduceLoop();
  if (lane_loop == nullptr) return absl::OkStatus();
  if (lane_loop->max_extent > target.hierarchy.shuffle_lanes) {
    return absl::FailedPreconditionError(fmt::format(
        "loop {} is a reduction that {} lanes share; lanes of the target can share one of up to {} iterations",
        lane_loop->name, lane_loop->max_extent, target.hierarchy.shuffle_lanes));
  }
  if (lane_loop == &nest.loops.back()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("loop {} is inside loop {}, a reduction that lanes share; such a loop must be the innermost",
                  nest.loops.back().name, lane_loop->name));
}

absl::Status CheckLegal(const State& state, const target::Target& target) {
  std::map<const Nest*, int64_t> local_bytes;  // local bytes of the stages computed inside each top-level stage
  for (const Nest& nest : state.nests) {
    if (nest.instruction.has_value() && std::find(target.tensor_instructions.begin(), target.tensor_instructions.end(),
                                                  *nest.instruction) == target.tensor_instructions.end()) {
      return absl::FailedPreconditionError(fmt::format("stage {} uses instruction {}, which the target does not have",
                                                       nest.stage.buffer->name, ir::EntryOf(*nest.instruction).name));
    }
    if (absl::Status legal = CheckLaneReduceLegal(nest, target); !legal.ok()) return legal;
    if (nest.stage.reduction == ir::Reduction::kOrder && target.facts().has_grid) {
      return absl::FailedPreconditionError(fmt::format(
          "stage {} is a sort ('order'), which only threads can do; the target has lanes", nest.stage.buffer->name));
    }
    if (nest.IsBulkCopied() && target.hierarchy.sharing_groups == 0) {
      return absl::FailedPreconditionError(
          fmt::format("stage {} uses bulk copies, which the target does not have", nest.stage.buffer->name));
    }
    if (nest.copy.elements > 0 && target.memory.shared_bytes == 0) {
      return absl::FailedPreconditionError(
          fmt::format("stage {} is copied asynchronously to shared memory, which the target does not have",
                      nest.stage.buffer->name));
    }
    if (!nest.IsTopLevel() && nest.storage.scope == ir::Scope::kLocal) {
      int64_t bytes = ir::SizeOf(nest.stage.buffer->dtype);
      for (const ir::Size& extent : nest.storage.shape) bytes *= std::max<int64_t>(extent.max(), 1);
      local_bytes[&schedule::TopLevelNestOf(state, nest)] += bytes;
    }
    if (nest.IsTopLevel() && nest.storage.scope != ir::Scope::kWorkspace) {
      return absl::FailedPreconditionError(fmt::format("stage {} is stored in {} memory but not computed inside a loop",
                                                       nest.stage.buffer->name, ir::Name(nest.storage.scope)));
    }
    const bool bound = nest.HasLoop(ir::LoopKind::kGroup) || nest.HasLoop(ir::LoopKind::kLane);
    if (bound && !nest.overlapping.empty()) {
      return absl::FailedPreconditionError(
          fmt::format("tiles of loop {} overlap: lanes would write the same elements", nest.overlapping.front()));
    }
    bool in_reduction = false;
    for (const Loop& loop : nest.loops) {
      in_reduction |= loop.reduce;
      if (std::ranges::find(nest.overlapping, loop.name) == nest.overlapping.end()) continue;
      if (in_reduction) {
        return absl::FailedPreconditionError(
            fmt::format("tiles of loop {} overlap inside a reduction and would be added twice", loop.name));
      }
      if (loop.kind == ir::LoopKind::kParallel && nest.stage.reduction != ir::Reduction::kNone) {
        return absl::FailedPreconditionError(
            fmt::format("tiles of loop {} overlap: threads would add to the same elements", loop.name));
      }
    }
  }
  for (const auto& [root, bytes] : local_bytes) {
    if (bytes <= target.memory.local_bytes) continue;
    return absl::FailedPreconditionError(
        fmt::format("stages computed inside loops need {} bytes of local memory; a thread has {}", bytes,
                    target.memory.local_bytes));
  }
  return absl::OkStatus();
}

// Binds the open sizes to the elements of the buffer. The bounds make every access safe, whatever the caller passes.
ir::Stmt BindSizes(const std::vector<ir::OpenSize>& sizes, const ir::Buffer& values, ir::Stmt body) {
  for (size_t i = sizes.size(); i-- > 0;) {
    const ir::Expr value = ir::MakeLoad(values, {ir::Expr(static_cast<int64_t>(i))});
    body = ir::MakeLet(sizes[i].name, Min(Max(value, ir::Expr(sizes[i].min)), ir::Expr(sizes[i].max)), std::move(body));
  }
  return body;
}

}  // namespace

absl::StatusOr<Loops> BuildLoops(const State& state, const target::Target& target, const std::string& name) {
  HONE_RETURN_IF_ERROR(CheckLegal(state, target));
  HONE_RETURN_IF_ERROR(schedule::CheckCommitGroups(state));
  LoopBuilder builder(state);
  Loops loops;
  for (const Nest& nest : state.nests) {
    if (nest.prepared && IsReadByKernel(state, nest)) loops.packed.push_back(nest.stage.buffer);
  }
  std::vector<ir::Buffer> buffers;
  for (const ir::Param& param : state.params) buffers.push_back(param.buffer);
  buffers.insert(buffers.end(), loops.packed.begin(), loops.packed.end());
  loops.prepare = {"", buffers, builder.BuildTopLevel(true)};
  if (loops.prepare.body.defined()) loops.prepare.name = "prepare_" + Sha256Hex(ir::Print(loops.prepare)).substr(0, 16);
  buffers.insert(buffers.end(), state.outputs.begin(), state.outputs.end());
  loops.main = {name, buffers, builder.BuildTopLevel(false)};
  if (!state.sizes.empty()) {
    loops.sizes = ir::MakeBuffer("sizes", ir::DType::kInt64, {static_cast<int64_t>(state.sizes.size())});
    loops.main.params.push_back(loops.sizes);
    loops.main.body = BindSizes(state.sizes, loops.sizes, loops.main.body);
  }
  HONE_RETURN_IF_ERROR(builder.status());
  return loops;
}

}  // namespace hone::passes
