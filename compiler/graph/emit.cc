// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/emit.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/match.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {
namespace {

constexpr int64_t kTensorBytesMax = int64_t{1} << 40;

std::string NodeText(const Node& node) {
  const std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
  return fmt::format("node '{}' ({})", node.name, op);
}

TensorType TypeOf(const ir::BufferNode& buffer) { return {buffer.dtype, buffer.shape}; }

// Checks the sizes of all stages: an operator may create large intermediate tensors for small outputs, and reduction
// spaces whose size overflows.
absl::Status CheckStage(const ir::Stage& stage) {
  HONE_RETURN_IF_ERROR(CheckSize(TypeOf(*stage.buffer)));
  int64_t steps = 1;
  for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
    for (const ir::Axis& axis : *axes) {
      if (__builtin_mul_overflow(steps, std::max<int64_t>(axis.extent.max(), 1), &steps)) {
        return absl::InvalidArgumentError("computing it would take 2^63 steps or more; use smaller sizes");
      }
    }
  }
  return absl::OkStatus();
}

// The number of evaluations of stage values; INT64_MAX if it overflows.
int64_t EvaluationsOf(const std::vector<ir::Stage>& stages) {
  int64_t steps = 0;
  for (const ir::Stage& stage : stages) {
    int64_t count = 1;
    for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
      for (const ir::Axis& axis : *axes) {
        if (__builtin_mul_overflow(count, std::max<int64_t>(axis.extent.max(), 1), &count)) return INT64_MAX;
      }
    }
    if (__builtin_add_overflow(steps, count, &steps)) return INT64_MAX;
  }
  return steps;
}

absl::Status OutputNotMade(const Graph& graph, const Node& node, size_t output) {
  const ValueId id = node.outputs[output];
  const bool known = id >= 0 && static_cast<size_t>(id) < graph.values.size();
  return absl::UnimplementedError(fmt::format(
      "{}: the model reads its output {}{}, which the operator does not make at inference; export the model for "
      "inference, or remove the nodes that read that output",
      NodeText(node), output, known ? fmt::format(" ('{}')", graph.values[id].name) : ""));
}

// The buffers that the stages load, and the outputs.
std::set<const ir::BufferNode*> ReadBuffers(const EmittedNode& emitted) {
  std::set<const ir::BufferNode*> read;
  for (const ir::Stage& stage : emitted.stages) {
    ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
      if (const auto* load = e.As<ir::Load>()) read.insert(load->buffer.get());
    });
  }
  for (const ir::Buffer& output : emitted.outputs) read.insert(output.get());
  return read;
}

// Returns true if a result, or the space over which a stage runs, depends on an open size.
bool UsesOpenSizes(const EmittedNode& emitted) {
  for (const ir::Buffer& output : emitted.outputs) {
    if (output != nullptr && !ir::IsFixed(output->shape)) return true;
  }
  for (const ir::Stage& stage : emitted.stages) {
    std::set<std::string, std::less<>> axes;
    for (const auto* list : {&stage.axes, &stage.reduce_axes}) {
      for (const ir::Axis& axis : *list) {
        if (!axis.extent.IsFixed()) return true;
        axes.insert(axis.name);
      }
    }
    bool open = false;
    ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
      const auto* var = e.As<ir::Var>();
      open = open || (var != nullptr && !axes.contains(var->name));
    });
    if (open) return true;
  }
  return false;
}

}  // namespace

absl::Status CheckSize(const TensorType& type) {
  int64_t bytes = ir::SizeOf(type.dtype);
  for (const ir::Size& extent : type.shape) {
    if (extent.min() < 0) {
      return absl::InvalidArgumentError(
          fmt::format("dimension {} {} negative", extent, extent.IsFixed() ? "is" : "may be"));
    }
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent.max(), 1), &bytes) || bytes > kTensorBytesMax) {
      // Arithmetic on sizes saturates, so the largest number stands for any number above it.
      const bool saturated = std::ranges::any_of(type.shape, [](const ir::Size& s) { return s.max() == INT64_MAX; });
      return absl::InvalidArgumentError(saturated ? "a dimension of 2^63 - 1 or more is too large; use smaller sizes"
                                                  : Print(type) + " would take more than 1 TiB; use smaller sizes");
    }
  }
  return absl::OkStatus();
}

int64_t ByteSize(const TensorType& type) {
  int64_t bytes = ir::SizeOf(type.dtype);
  for (const ir::Size& extent : type.shape) bytes *= extent.max();
  return bytes;
}

std::string Print(const TensorType& type) {
  return fmt::format("{}[{}]", ir::Name(type.dtype), fmt::join(type.shape, ","));
}

absl::StatusOr<std::vector<ir::Buffer>> EmitInto(const Graph& graph, const Node& node, std::vector<ir::Buffer> inputs,
                                                 StageBuilder& builder) {
  const OpDef* op = FindOp(node.domain, node.op);
  if (op == nullptr) return absl::UnimplementedError(NodeText(node) + ": the operator is not supported");
  OpArgs args{.node = node, .inputs = std::move(inputs), .constants = {}, .elements = {}, .sizes = graph.sizes};
  for (ValueId id : node.inputs) {
    args.constants.push_back(id == kAbsent ? nullptr : graph.values[id].data);
    args.elements.push_back(id == kAbsent ? nullptr : graph.values[id].elements);
  }
  const size_t before = builder.stages().size();
  absl::StatusOr<std::vector<ir::Buffer>> outputs = op->emit(args, builder);
  HONE_RETURN_IF_ERROR(
      Annotate(args.attribute_error, NodeText(node)));  // first, because other errors may follow from it
  if (!outputs.ok()) return Annotate(outputs.status(), NodeText(node));
  for (const ir::Stage& stage : builder.stages().subspan(before)) {
    HONE_RETURN_IF_ERROR(Annotate(CheckStage(stage), NodeText(node)));
  }
  const size_t made = outputs->size();
  outputs->resize(node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    ir::Buffer& output = (*outputs)[i];
    if (node.outputs[i] == kAbsent) {
      output = nullptr;
      continue;
    }
    if (i >= made) return OutputNotMade(graph, node, i);
    HONE_CHECK(output != nullptr);
    HONE_RETURN_IF_ERROR(Annotate(CheckSize(TypeOf(*output)), NodeText(node)));
  }
  return outputs;
}

absl::StatusOr<EmittedNode> EmitNode(const Graph& graph, const Node& node) {
  EmittedNode emitted;
  std::map<ValueId, ir::Buffer> buffers;
  for (ValueId id : node.inputs) {
    if (id == kAbsent) {
      emitted.inputs.push_back(nullptr);
      continue;
    }
    ir::Buffer& buffer = buffers[id];
    const Value& value = graph.values[id];
    if (buffer == nullptr) buffer = ir::MakeBuffer(fmt::format("in{}", id), value.type.dtype, value.type.shape);
    emitted.inputs.push_back(buffer);
  }
  StageBuilder builder;
  HONE_ASSIGN_OR_RETURN(emitted.outputs, EmitInto(graph, node, emitted.inputs, builder));
  emitted.stages = builder.TakeStages();
  return emitted;
}

absl::StatusOr<std::vector<TensorType>> InferTypes(const Graph& graph, const Node& node) {
  if (IsControlFlow(node)) {
    absl::StatusOr<std::vector<TensorType>> types = ControlTypes(graph, node);
    return types.ok() ? std::move(types) : Annotate(types.status(), NodeText(node));
  }
  HONE_ASSIGN_OR_RETURN(EmittedNode emitted, EmitNode(graph, node));
  std::vector<TensorType> types;
  for (const ir::Buffer& buffer : emitted.outputs) {
    types.push_back(buffer == nullptr ? TensorType{} : TensorType{buffer->dtype, buffer->shape});
  }
  return types;
}

absl::StatusOr<bool> IsKnown(const Graph& graph, const Node& node) {
  if (IsControlFlow(node)) return false;
  HONE_ASSIGN_OR_RETURN(const EmittedNode emitted, EmitNode(graph, node));
  if (!graph.sizes.empty() && UsesOpenSizes(emitted)) return false;
  const std::set<const ir::BufferNode*> read = ReadBuffers(emitted);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id != kAbsent && graph.values[id].data == nullptr && read.contains(emitted.inputs[i].get())) return false;
  }
  return true;
}

absl::StatusOr<std::vector<Constant>> Evaluate(const Graph& graph, const Node& node, int64_t steps_max,
                                               int64_t* steps) {
  HONE_ASSIGN_OR_RETURN(EmittedNode emitted, EmitNode(graph, node));
  const int64_t needed = EvaluationsOf(emitted.stages);
  if (steps != nullptr) *steps = needed;
  if (needed > steps_max) return absl::ResourceExhaustedError("too large to compute while compiling");
  const std::set<const ir::BufferNode*> read = ReadBuffers(emitted);
  ir::Workload workload{.op = "constant", .params = {}, .stages = std::move(emitted.stages), .outputs = {}};
  std::vector<std::span<const std::byte>> params;
  std::map<const ir::BufferNode*, TensorData> known;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kAbsent || !read.contains(emitted.inputs[i].get())) continue;
    const TensorData& data = graph.values[node.inputs[i]].data;
    HONE_CHECK(data != nullptr);
    if (!known.emplace(emitted.inputs[i].get(), data).second) continue;
    workload.params.push_back({.buffer = emitted.inputs[i]});
    params.push_back(*data);
  }
  for (const ir::Buffer& output : emitted.outputs) {
    if (output != nullptr && !known.contains(output.get())) workload.outputs.push_back(output);
  }
  std::vector<ir::Bytes> computed;
  if (!workload.outputs.empty()) {
    HONE_RETURN_IF_ERROR(Annotate(ir::Verify(workload), NodeText(node)));
    absl::StatusOr<std::vector<ir::Bytes>> bytes = ir::Interpret(workload, params);
    if (!bytes.ok()) return Annotate(bytes.status(), NodeText(node));
    computed = *std::move(bytes);
  }
  std::vector<Constant> results;
  size_t next = 0;
  for (const ir::Buffer& output : emitted.outputs) {
    if (output == nullptr) {
      results.emplace_back();
      continue;
    }
    auto it = known.find(output.get());
    TensorData data = it != known.end() ? it->second : std::make_shared<const ir::Bytes>(std::move(computed[next++]));
    results.push_back({{output->dtype, output->shape}, std::move(data)});
  }
  return results;
}

}  // namespace hone::graph
