// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/kernel.h"

#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/graph/abstract_sizes.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/op.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/ir/match.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

template <typename T>
ir::Expr IntegerImmediate(ir::DType dtype, const std::vector<std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return ir::MakeInt({dtype, 1}, static_cast<int64_t>(value));
}

template <typename T>
ir::Expr FloatImmediate(ir::DType dtype, const std::vector<std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return ir::MakeFloat({dtype, 1}, static_cast<double>(value));
}

// Returns the only element of a constant; null for half types, which are read like any other tensor.
std::optional<ir::Expr> Immediate(const Value& value) {
  if (value.data == nullptr || value.type.elements() != 1) return std::nullopt;
  const ir::DType dtype = value.type.dtype;
  switch (dtype) {
    case ir::DType::kBool:
      return ir::MakeBool(value.data->front() != std::byte{0});
    case ir::DType::kInt8:
      return IntegerImmediate<int8_t>(dtype, *value.data);
    case ir::DType::kInt16:
      return IntegerImmediate<int16_t>(dtype, *value.data);
    case ir::DType::kInt32:
      return IntegerImmediate<int32_t>(dtype, *value.data);
    case ir::DType::kInt64:
      return IntegerImmediate<int64_t>(dtype, *value.data);
    case ir::DType::kUInt8:
      return IntegerImmediate<uint8_t>(dtype, *value.data);
    case ir::DType::kUInt16:
      return IntegerImmediate<uint16_t>(dtype, *value.data);
    case ir::DType::kUInt32:
      return IntegerImmediate<uint32_t>(dtype, *value.data);
    case ir::DType::kUInt64:
      return IntegerImmediate<uint64_t>(dtype, *value.data);
    case ir::DType::kFloat32:
      return FloatImmediate<float>(dtype, *value.data);
    case ir::DType::kFloat64:
      return FloatImmediate<double>(dtype, *value.data);
    case ir::DType::kFloat16:
    case ir::DType::kBFloat16:
      return std::nullopt;
  }
  return std::nullopt;
}

// Per buffer its elements.
using Immediates = std::map<const ir::BufferNode*, std::vector<ir::Expr>>;

ir::Expr EmbedImmediates(const ir::Expr& e, const Immediates& immediates) {
  if (const auto* load = e.As<ir::Load>()) {
    auto it = immediates.find(load->buffer.get());
    if (it != immediates.end() && it->second.size() == 1) return it->second.front();
    if (it != immediates.end()) {
      const ir::Expr place = Flatten(load->indices, load->buffer->shape);
      return Choose(EmbedImmediates(place, immediates), it->second);
    }
  }
  return ir::MapChildren(e, [&](const ir::Expr& child) { return EmbedImmediates(child, immediates); });
}

// Operators write the index of a dimension of extent 1 either as 0 or as the variable. This rewrites loads at the
// stage's own indices to use the variable always. Equal kernels then have equal text, and a load at the stage's own
// indices is easy to recognize.
ir::Expr NormalizeOwnPlace(const ir::Expr& e, const ir::Stage& stage) {
  const ir::Expr mapped = ir::MapChildren(e, [&](const ir::Expr& child) { return NormalizeOwnPlace(child, stage); });
  const auto* load = mapped.As<ir::Load>();
  if (load == nullptr || load->buffer->shape != stage.buffer->shape) return mapped;
  std::vector<ir::Expr> own;
  for (size_t d = 0; d < stage.axes.size(); ++d) {
    const auto* var = load->indices[d].As<ir::Var>();
    const auto* zero = load->indices[d].As<ir::IntImm>();
    const bool same = var != nullptr && var->name == stage.axes[d].name;
    if (!same && !(zero != nullptr && zero->value == 0 && stage.axes[d].extent == 1)) return mapped;
    own.push_back(ir::MakeVar(stage.axes[d].name));
  }
  return ir::MakeLoad(load->buffer, std::move(own), load->mask);
}

// Returns true if the expression loads one of the buffers, with the stage's shape, possibly under a cast.
bool LoadsWhole(const ir::Expr& e, const ir::Stage& stage, const std::set<const ir::BufferNode*>& buffers) {
  if (const auto* cast = e.As<ir::Cast>()) return LoadsWhole(cast->value, stage, buffers);
  const auto* load = e.As<ir::Load>();
  return load != nullptr && load->buffer->shape == stage.buffer->shape && buffers.contains(load->buffer.get());
}

// Orders operands of sums and products: first the operand computed in the kernel, then the one from outside. A model
// may write the residual first or second; the kernels are then equal.
ir::Expr PutOwnFirst(const ir::Expr& e, const ir::Stage& stage, const std::set<const ir::BufferNode*>& made,
                     const std::set<const ir::BufferNode*>& given) {
  const ir::Expr mapped =
      ir::MapChildren(e, [&](const ir::Expr& child) { return PutOwnFirst(child, stage, made, given); });
  const auto* binary = mapped.As<ir::Binary>();
  if (binary == nullptr || (binary->op != ir::BinaryOp::kAdd && binary->op != ir::BinaryOp::kMul)) return mapped;
  if (!LoadsWhole(binary->a, stage, given) || !LoadsWhole(binary->b, stage, made)) return mapped;
  return ir::MakeBinary(binary->op, binary->b, binary->a);
}

struct ParamRange {
  double low, high;
};

ParamRange DefaultParamRange(ir::DType dtype) {
  if (dtype == ir::DType::kBool) return {0, 1};
  if (ir::IsUnsignedInt(dtype)) return {0, 15};
  return {-1, 1};
}

// Removes stages that no output depends on. Operators write such stages if extents of 1 or omitted outputs make them
// useless.
void DropUnread(ir::Workload& workload) {
  std::set<const ir::BufferNode*> read;
  for (const ir::Buffer& output : workload.outputs) read.insert(output.get());
  for (size_t i = workload.stages.size(); i-- > 0;) {
    const ir::Stage& stage = workload.stages[i];
    if (!read.contains(stage.buffer.get())) {
      workload.stages.erase(workload.stages.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
      if (const auto* load = e.As<ir::Load>()) read.insert(load->buffer.get());
    });
  }
}

class KernelBuilder {
 public:
  KernelBuilder(const Graph& graph, const Cluster& cluster) : graph_(graph), cluster_(cluster) {}

  absl::StatusOr<Kernel> Run() {
    for (int index : cluster_.nodes) HONE_RETURN_IF_ERROR(Emit(graph_.nodes[index]));
    Kernel kernel;
    AddOutputs(kernel);
    workload_.stages = builder_.TakeStages();
    workload_.op = cluster_.op;
    std::set<const ir::BufferNode*> made, given;
    for (ValueId id : outside_) given.insert(buffers_[id].get());
    for (ir::Stage& stage : workload_.stages) {
      stage.value = NormalizeOwnPlace(EmbedImmediates(stage.value, immediates_), stage);
      if (stage.reduction == ir::Reduction::kNone) stage.value = PutOwnFirst(stage.value, stage, made, given);
      made.insert(stage.buffer.get());
    }
    DropUnread(workload_);
    HONE_RETURN_IF_ERROR(AddParams());
    AddSizes();
    const std::vector<ir::Size> sizes = AbstractSizes(workload_);
    HONE_RETURN_IF_ERROR(ir::Verify(workload_));
    for (size_t from : ir::CanonicalSizeOrder(workload_)) kernel.sizes.push_back(sizes[from]);
    for (size_t from : ir::CanonicalParamOrder(workload_)) kernel.inputs.push_back(param_values_[from]);
    kernel.workload = ir::Canonicalize(workload_);
    return kernel;
  }

 private:
  absl::Status Emit(const Node& node) {
    OpArgs args{.node = node, .inputs = {}, .constants = {}, .elements = {}, .sizes = graph_.sizes};
    const bool floats_differ = FactsOf(node).floats_differ;
    for (ValueId id : node.inputs) {
      args.inputs.push_back(id == kAbsent ? nullptr : Input(id));
      args.constants.push_back(id == kAbsent ? nullptr : graph_.values[id].data);
      args.elements.push_back(id == kAbsent ? nullptr : graph_.values[id].elements);
      const ir::Buffer& buffer = args.inputs.back();
      if (floats_differ && buffer != nullptr && ir::IsFloat(buffer->dtype)) immediates_.erase(buffer.get());
    }
    NarrowRanges(args);
    HONE_ASSIGN_OR_RETURN(std::vector<ir::Buffer> outputs, EmitInto(graph_, node, args.inputs, builder_));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kAbsent) buffers_[node.outputs[i]] = outputs[i];
    }
    return absl::OkStatus();
  }

  // The buffer of a value produced in the cluster, or a new one for a value from outside.
  ir::Buffer Input(ValueId id) {
    auto [it, added] = buffers_.try_emplace(id, nullptr);
    if (!added) return it->second;
    const Value& value = graph_.values[id];
    it->second = ir::MakeBuffer(fmt::format("in{}", id), value.type.dtype, value.type.shape);
    outside_.push_back(id);
    ranges_.emplace(id, DefaultParamRange(value.type.dtype));
    if (value.elements != nullptr && !value.elements->empty()) {
      immediates_.emplace(it->second.get(), *value.elements);
    } else if (std::optional<ir::Expr> immediate = Immediate(value)) {
      immediates_.emplace(it->second.get(), std::vector<ir::Expr>{*immediate});
    }
    return it->second;
  }

  void NarrowRanges(const OpArgs& args) {
    const OpDef* op = FindOp(args.node.domain, args.node.op);
    if (op == nullptr || op->input_range == nullptr) return;
    for (size_t i = 0; i < args.node.inputs.size(); ++i) {
      auto range = ranges_.find(args.node.inputs[i]);
      if (range != ranges_.end()) op->input_range(args, i, &range->second.low, &range->second.high);
    }
  }

  void AddOutputs(Kernel& kernel) {
    const std::set<ValueId> outside(outside_.begin(), outside_.end());
    std::set<const ir::BufferNode*> params, taken;
    for (ValueId id : outside) params.insert(buffers_[id].get());
    for (ValueId id : graph_.nodes[cluster_.nodes.back()].outputs) {
      if (id == kAbsent) continue;
      ir::Buffer buffer = buffers_[id];
      // Every output must be written by the kernel, so a plain copy becomes a stage of its own.
      if (params.contains(buffer.get()) || taken.contains(buffer.get())) {
        const ir::Buffer source = buffer;
        buffer = builder_.Compute("copy", source->dtype, source->shape, [&](std::span<const ir::Expr> indices) {
          return ir::MakeLoad(source, {indices.begin(), indices.end()});
        });
      }
      taken.insert(buffer.get());
      workload_.outputs.push_back(buffer);
      kernel.outputs.push_back(id);
    }
  }

  // Keeps only params that the stages still read. Shape and axis inputs are not read at run time, and immediates have
  // replaced their constants.
  absl::Status AddParams() {
    std::set<const ir::BufferNode*> loaded;
    for (const ir::Stage& stage : workload_.stages) {
      ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
        if (const auto* load = e.As<ir::Load>()) loaded.insert(load->buffer.get());
      });
    }
    for (ValueId id : outside_) {
      if (!loaded.contains(buffers_[id].get())) continue;
      const bool constant = graph_.values[id].data != nullptr;
      const ParamRange range = ranges_.at(id);
      workload_.params.push_back({.buffer = buffers_[id],
                                  .kind = constant ? ir::ParamKind::kConstant : ir::ParamKind::kInput,
                                  .low = range.low,
                                  .high = range.high});
      param_values_.push_back(id);
    }
    return absl::OkStatus();
  }

  // Declares the open sizes that the workload uses, in the order in which Canonicalize renames them: those of shapes,
  // of extents, and of values alone.
  void AddSizes() {
    std::map<std::string, ir::OpenSize, std::less<>> symbols;
    const auto note = [&](const ir::OpenSize& symbol) { symbols.emplace(symbol.name, symbol); };
    for (const ir::OpenSize& symbol : graph_.sizes) note(symbol);
    for (const auto& [id, buffer] : buffers_) {
      for (const ir::Size& extent : buffer->shape) extent.ForEachSymbol(note);
    }
    std::set<std::string> used;
    const auto use = [&](const ir::OpenSize& symbol) {
      note(symbol);
      if (used.insert(symbol.name).second) workload_.sizes.push_back(symbol);
    };
    for (const size_t i : ir::CanonicalParamOrder(workload_)) {
      for (const ir::Size& extent : workload_.params[i].buffer->shape) extent.ForEachSymbol(use);
    }
    for (const ir::Stage& stage : workload_.stages) {
      for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
        for (const ir::Axis& axis : *axes) axis.extent.ForEachSymbol(use);
      }
    }
    for (const ir::Stage& stage : workload_.stages) {
      ir::ForEachExpr(stage.value, [&](const ir::Expr& e) {
        const auto* var = e.As<ir::Var>();
        const auto symbol = var == nullptr ? symbols.end() : symbols.find(var->name);
        if (symbol != symbols.end()) use(symbol->second);
      });
    }
  }

  const Graph& graph_;
  const Cluster& cluster_;
  StageBuilder builder_;
  ir::Workload workload_;
  std::map<ValueId, ir::Buffer> buffers_;
  std::vector<ValueId> outside_;  // in order of first use
  std::map<ValueId, ParamRange> ranges_;
  Immediates immediates_;
  std::vector<ValueId> param_values_;  // one per param of workload_
};

}  // namespace

absl::StatusOr<Kernel> BuildKernel(const Graph& graph, const Cluster& cluster) {
  return KernelBuilder(graph, cluster).Run();
}

}  // namespace hone::graph
