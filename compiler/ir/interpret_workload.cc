// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/interpret.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

using eval::Code;
using eval::ExprCompiler;
using eval::Frame;
using eval::Value;

constexpr int64_t kStageBytesMax = int64_t{1} << 34;

// Iterates over all index tuples of some axes, the last axis fastest.
class Odometer {
 public:
  Odometer(const std::vector<Axis>& axes, ExprCompiler* compiler) {
    for (const Axis& axis : axes) {
      slots_.push_back(static_cast<size_t>(compiler->BindVar(axis.name)));
      extents_.push_back(axis.extent.value());
    }
  }

  // Sets all indices to zero. Returns false if an extent is zero.
  bool Start(Frame& frame) const {
    for (size_t slot : slots_) frame.vars[slot].i = 0;
    return std::all_of(extents_.begin(), extents_.end(), [](int64_t extent) { return extent > 0; });
  }
  // Moves to the next tuple. Returns false after the last one.
  bool Step(Frame& frame) const {
    for (size_t i = slots_.size(); i-- > 0;) {
      int64_t& index = frame.vars[slots_[i]].i;
      if (++index < extents_[i]) return true;
      index = 0;
    }
    return false;
  }

 private:
  std::vector<size_t> slots_;
  std::vector<int64_t> extents_;
};

using Memory = std::map<const BufferNode*, std::byte*>;

absl::Status RunStage(const Stage& stage, const Memory& memory, std::byte* out) {
  ExprCompiler compiler;
  std::vector<std::byte*> buffers;
  for (const auto& [buffer, data] : memory) {
    compiler.BindBuffer(buffer);
    buffers.push_back(data);
  }
  const Odometer outer(stage.axes, &compiler);
  const Odometer inner(stage.reduce_axes, &compiler);
  const auto accumulator = static_cast<size_t>(compiler.NewSlot());
  const DType dtype = stage.buffer->dtype;
  HONE_ASSIGN_OR_RETURN(const Code* value, compiler.Compile(stage.value));
  const Code* identity = nullptr;
  if (stage.reduction != Reduction::kNone) {
    const Expr first = Identity(stage.reduction, {dtype, 1});
    HONE_ASSIGN_OR_RETURN(identity, compiler.Compile(first));
    const Code* so_far = compiler.CompileSlot(static_cast<int>(accumulator));
    value = compiler.CompileBinary(Combine(stage.reduction, first, first).As<Binary>()->op, dtype, so_far, value);
  }
  Frame frame;
  frame.vars.resize(static_cast<size_t>(compiler.var_slots()));
  frame.buffers = std::move(buffers);
  Value& result = frame.vars[accumulator];
  if (!outer.Start(frame)) return absl::OkStatus();
  do {
    if (identity == nullptr) {
      result = (*value)(frame);
    } else {
      result = (*identity)(frame);
      if (inner.Start(frame)) {
        do {
          result = (*value)(frame);
        } while (inner.Step(frame));
      }
    }
    if (frame.failed) return absl::OutOfRangeError(frame.error);
    eval::Write(dtype, result, out);
    out += SizeOf(dtype);
  } while (outer.Step(frame));
  return absl::OkStatus();
}

// Sorts every line of the stage (Reduction::kOrder).
absl::Status RunOrder(const Stage& stage, const Memory& memory, std::byte* out) {
  ExprCompiler compiler;
  Frame frame;
  for (const auto& [buffer, data] : memory) {
    compiler.BindBuffer(buffer);
    frame.buffers.push_back(data);
  }
  const Odometer lines({stage.axes.begin(), stage.axes.end() - 1}, &compiler), line(stage.reduce_axes, &compiler);
  HONE_ASSIGN_OR_RETURN(const Code* value, compiler.Compile(stage.value));
  frame.vars.resize(static_cast<size_t>(compiler.var_slots()));
  const auto places = static_cast<size_t>(stage.axes.back().extent.value());
  if (!lines.Start(frame) || places == 0) return absl::OkStatus();
  do {
    std::vector<int64_t> pairs;
    if (line.Start(frame)) {
      do {
        pairs.push_back((*value)(frame).i);
      } while (line.Step(frame));
    }
    if (frame.failed) return absl::OutOfRangeError(frame.error);
    if (pairs.size() < places) {
      return absl::OutOfRangeError(fmt::format("it has {} places for {} values", places, pairs.size()));
    }
    std::ranges::stable_sort(pairs, {}, [](int64_t pair) { return pair >> 32; });
    for (size_t place = 0; place < places; ++place, out += sizeof(int64_t)) {
      eval::Write(DType::kInt64, Value{.i = pairs[place]}, out);
    }
  } while (lines.Step(frame));
  return absl::OkStatus();
}

absl::StatusOr<Memory> BindParams(const Workload& workload, std::span<const std::span<const std::byte>> params) {
  if (params.size() != workload.params.size()) {
    return absl::InvalidArgumentError(
        fmt::format("got {} arguments for {} parameters", params.size(), workload.params.size()));
  }
  Memory memory;
  for (size_t i = 0; i < params.size(); ++i) {
    const BufferNode& buffer = *workload.params[i].buffer;
    if (static_cast<int64_t>(params[i].size()) != NumBytes(buffer)) {
      return absl::InvalidArgumentError(fmt::format("argument '{}' has {} bytes, but its parameter has {}", buffer.name,
                                                    params[i].size(), NumBytes(buffer)));
    }
    // The interpreter never writes to a param, since a stage writes only to its own buffer.
    memory[&buffer] = const_cast<std::byte*>(params[i].data());
  }
  return memory;
}

absl::StatusOr<std::vector<Bytes>> RunStages(const Workload& workload,
                                             std::span<const std::span<const std::byte>> params) {
  HONE_ASSIGN_OR_RETURN(Memory memory, BindParams(workload, params));
  std::map<const BufferNode*, Bytes> results;
  for (const Stage& stage : workload.stages) {
    const BufferNode* buffer = stage.buffer.get();
    if (NumBytes(*buffer) > kStageBytesMax) {
      return absl::ResourceExhaustedError(fmt::format("stage '{}' needs {} bytes", buffer->name, NumBytes(*buffer)));
    }
    Bytes& result = results[buffer];
    result.resize(static_cast<size_t>(NumBytes(*buffer)));
    const auto run = stage.reduction == Reduction::kOrder ? RunOrder : RunStage;
    HONE_RETURN_IF_ERROR(Annotate(run(stage, memory, result.data()), fmt::format("stage '{}'", buffer->name)));
    memory[buffer] = result.data();
  }
  std::vector<Bytes> outputs;
  for (const Buffer& output : workload.outputs) outputs.push_back(std::move(results[output.get()]));
  return outputs;
}

}  // namespace

absl::StatusOr<std::vector<Bytes>> Interpret(const Workload& workload,
                                             std::span<const std::span<const std::byte>> params) {
  HONE_RETURN_IF_ERROR(Verify(workload));
  if (!workload.sizes.empty()) return absl::InvalidArgumentError("its sizes are open; give them numbers first");
  auto outputs = RunStages(workload, params);
  if (!outputs.ok()) return Annotate(outputs.status(), fmt::format("workload \"{}\"", workload.op));
  return outputs;
}

}  // namespace hone::ir
