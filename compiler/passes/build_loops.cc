#include "compiler/passes/build_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/status.h"
#include "compiler/ir/op_names.h"
#include "compiler/schedule/instruction.h"

namespace hone::passes {
namespace {

using schedule::Loop;
using schedule::Nest;
using schedule::State;

// Threads of the pool and of the launcher's children have stacks of 8 MiB; a kernel takes at most this much.

class LoopBuilder {
 public:
  explicit LoopBuilder(const State& state) : state_(state) {
    for (const Nest& nest : state.nests) {
      const ir::Buffer& buffer = nest.stage.buffer;
      if (state.IsOutput(buffer.get()) || nest.prepared) {
        storage_[buffer.get()] = buffer;
      } else {
        std::vector<int64_t> shape = nest.storage_shape;
        if (!shape.empty()) shape.back() += nest.pad;
        storage_[buffer.get()] = ir::MakeBuffer(buffer->name, buffer->dtype, std::move(shape), nest.scope);
      }
    }
  }

  // Why an instruction does not fit where it is used; OK if all do. After Roots.
  const absl::Status& status() const { return status_; }

  ir::Stmt Roots(bool prepared) {
    std::vector<ir::Stmt> stmts;
    std::vector<ir::Buffer> temporaries;
    for (const Nest& nest : state_.nests) {
      if (!nest.AtRoot() || nest.prepared != prepared) continue;
      const ir::Buffer& buffer = storage_.at(nest.stage.buffer.get());
      if (buffer->scope == ir::Scope::kWorkspace) temporaries.push_back(buffer);
      stmts.push_back(Emit(nest));
    }
    if (stmts.empty()) return {};
    ir::Stmt body = ir::MakeBlock(std::move(stmts));
    for (const ir::Buffer& buffer : temporaries) body = ir::MakeAlloc(buffer, body);
    return body;
  }

 private:
  // Where the sums begin: outside the first loop that reduces, and outside an instruction.
  static size_t FirstReduction(const Nest& nest) {
    const auto it = std::find_if(nest.loops.begin(), nest.loops.end(), [](const Loop& l) { return l.reduce; });
    return std::min(static_cast<size_t>(it - nest.loops.begin()), nest.loops.size() - nest.InstructionLoops());
  }

  ir::Stmt Emit(const Nest& nest) { return ir::MakeBlock({Inside(nest, 0)}, nest.stage.buffer->name); }

  // What runs inside loops [0, position) of the nest.
  ir::Stmt Inside(const Nest& nest, size_t position) {
    const bool reduces = nest.stage.reduction != ir::Reduction::kNone;
    std::vector<ir::Stmt> stmts;
    if (reduces && position == FirstReduction(nest)) stmts.push_back(Initialize(nest, position));
    if (position == nest.loops.size() - nest.InstructionLoops()) {
      stmts.push_back(Guarded(nest, nest.instruction.has_value() ? Instruction(nest) : Update(nest)));
    } else {
      const Loop& loop = nest.loops[position];
      stmts.push_back(
          ir::MakeFor(loop.name, loop.extent, loop.kind, WithProducers(nest, loop, Inside(nest, position + 1))));
    }
    return ir::MakeBlock(std::move(stmts));
  }

  ir::Stmt WithProducers(const Nest& nest, const Loop& loop, ir::Stmt body) {
    std::vector<ir::Stmt> stmts;
    std::vector<ir::Buffer> buffers;
    for (const Nest& producer : state_.nests) {
      if (producer.at_stage != nest.stage.buffer->name || producer.at_loop != loop.name) continue;
      stmts.push_back(Emit(producer));
      buffers.push_back(storage_.at(producer.stage.buffer.get()));
    }
    if (stmts.empty()) return body;
    stmts.push_back(std::move(body));
    ir::Stmt result = ir::MakeBlock(std::move(stmts));
    for (const ir::Buffer& buffer : buffers) result = ir::MakeAlloc(buffer, result);
    return result;
  }

  // The identity of the reduction, stored over all loops of the nest that are inside its first reduction loop.
  ir::Stmt Initialize(const Nest& nest, size_t position) const {
    ir::VarMap rename;
    std::vector<Loop> loops;
    for (size_t i = position; i < nest.loops.size(); ++i) {
      if (nest.loops[i].reduce) continue;
      loops.push_back(nest.loops[i]);
      loops.back().name += "z";
      const bool row = nest.instruction.has_value() && i + 2 == nest.loops.size();  // of the instruction's sums
      if (row) loops.back().kind = ir::LoopKind::kVectorized;
      rename[nest.loops[i].name] = ir::MakeVar(loops.back().name);
    }
    const ir::Type type{nest.stage.buffer->dtype, 1};
    ir::Stmt stmt = Store(nest, ir::Identity(nest.stage.reduction, type), rename);
    for (const ir::Expr& guard : nest.guards) {
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

  ir::Stmt Instruction(const Nest& nest) {
    const ir::Expr sum = ir::MakeLoad(storage_.at(nest.stage.buffer.get()), Indices(nest, {}));
    auto contract =
        schedule::ContractOf(nest, sum, state_.LoopRanges(), [&](const ir::Expr& load) { return ReadStored(load); });
    if (contract.ok()) return *std::move(contract);
    if (status_.ok()) status_ = Annotate(contract.status(), "stage " + nest.stage.buffer->name);
    return ir::MakeBlock({});
  }

  static ir::Stmt Guarded(const Nest& nest, ir::Stmt stmt) {
    for (const ir::Expr& guard : nest.guards) stmt = ir::MakeIf(guard, stmt);
    return stmt;
  }

  std::vector<ir::Expr> Indices(const Nest& nest, const ir::VarMap& rename) const {
    std::vector<ir::Expr> indices;
    for (size_t d = 0; d < nest.stage.axes.size(); ++d) {
      ir::Expr index = nest.bindings.at(nest.stage.axes[d].name);
      if (!nest.AtRoot()) index = index - nest.origin[d];
      indices.push_back(ir::Substitute(index, rename));
    }
    return indices;
  }

  ir::Stmt Store(const Nest& nest, ir::Expr value, const ir::VarMap& rename) const {
    return ir::MakeStore(storage_.at(nest.stage.buffer.get()), Indices(nest, rename), std::move(value));
  }

  // Loads of stages as loads of where those stages are stored.
  ir::Expr ReadStored(const ir::Expr& e) const {
    const ir::Expr mapped = ir::MapChildren(e, [&](const ir::Expr& child) { return ReadStored(child); });
    const ir::Load* load = mapped.As<ir::Load>();
    if (load == nullptr) return mapped;
    const auto it = storage_.find(load->buffer.get());
    if (it == storage_.end()) return mapped;
    std::vector<ir::Expr> indices = load->indices;
    const Nest* nest = state_.FindNest(load->buffer.get());
    if (!nest->AtRoot()) {
      for (size_t d = 0; d < indices.size(); ++d) indices[d] = indices[d] - nest->origin[d];
    }
    return ir::MakeLoad(it->second, std::move(indices));
  }

  const State& state_;
  std::map<const ir::BufferNode*, ir::Buffer> storage_;
  absl::Status status_;
};

absl::Status CheckLegal(const State& state, const target::Target& target) {
  int64_t local_bytes = 0;
  for (const Nest& nest : state.nests) {
    if (nest.instruction.has_value() && std::find(target.tensor_instructions.begin(), target.tensor_instructions.end(),
                                                  *nest.instruction) == target.tensor_instructions.end()) {
      return absl::FailedPreconditionError(fmt::format("stage {} uses instruction {}, which the target does not have",
                                                       nest.stage.buffer->name, ir::EntryOf(*nest.instruction).name));
    }
    if (!nest.AtRoot() && nest.scope == ir::Scope::kLocal) {
      int64_t bytes = ir::SizeOf(nest.stage.buffer->dtype);
      for (const int64_t extent : nest.storage_shape) bytes *= std::max<int64_t>(extent, 1);
      local_bytes += bytes;
    }
    if (nest.AtRoot() && nest.scope != ir::Scope::kWorkspace) {
      return absl::FailedPreconditionError(fmt::format("stage {} is stored in {} memory but not computed inside a loop",
                                                       nest.stage.buffer->name, ir::Name(nest.scope)));
    }
    const bool bound = nest.HasLoop(ir::LoopKind::kGroup) || nest.HasLoop(ir::LoopKind::kLane);
    if (bound && !nest.shifted.empty()) {
      return absl::FailedPreconditionError(
          fmt::format("tiles of loop {} overlap: lanes would write the same elements", nest.shifted.front()));
    }
    bool in_reduction = false;
    for (const Loop& loop : nest.loops) {
      in_reduction |= loop.reduce;
      if (in_reduction && std::find(nest.shifted.begin(), nest.shifted.end(), loop.name) != nest.shifted.end()) {
        return absl::FailedPreconditionError(
            fmt::format("tiles of loop {} overlap inside a reduction and would be added twice", loop.name));
      }
    }
  }
  if (local_bytes > target.memory.local_bytes) {
    return absl::FailedPreconditionError(fmt::format("stages computed inside loops need {} bytes; a thread has {}",
                                                     local_bytes, target.memory.local_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Loops> BuildLoops(const State& state, const target::Target& target, const std::string& name) {
  HONE_RETURN_IF_ERROR(CheckLegal(state, target));
  LoopBuilder builder(state);
  Loops loops;
  for (const Nest& nest : state.nests) {
    if (nest.prepared) loops.packed.push_back(nest.stage.buffer);
  }
  std::vector<ir::Buffer> buffers;
  for (const ir::Param& param : state.params) buffers.push_back(param.buffer);
  buffers.insert(buffers.end(), loops.packed.begin(), loops.packed.end());
  loops.prepare = {name + "_prepare", buffers, builder.Roots(true)};
  buffers.insert(buffers.end(), state.outputs.begin(), state.outputs.end());
  loops.main = {name, buffers, builder.Roots(false)};
  HONE_RETURN_IF_ERROR(builder.status());
  return loops;
}

}  // namespace hone::passes
