// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/view.h"
#include "compiler/ir/elements.h"
#include "compiler/ir/numeric.h"

namespace hone::graph {
namespace {

bool IsFloatConstant(const Graph& graph, ValueId id) {
  return id != kAbsent && graph.values[id].data != nullptr && ir::IsFloat(graph.values[id].type.dtype);
}

// The elements of a float constant.
std::vector<double> NumbersOf(const Value& value) {
  std::vector<double> numbers(static_cast<size_t>(value.type.elements().value()));
  const std::byte* at = value.data->data();
  for (double& number : numbers) {
    number = ir::ElementAsDouble(value.type.dtype, at);
    at += ir::SizeOf(value.type.dtype);
  }
  return numbers;
}

// Adds a constant of these elements; returns kAbsent if one of them is not finite in the type.
ValueId AddNumbers(Graph& graph, std::string_view name, TensorType type, std::span<const double> numbers) {
  const size_t size = static_cast<size_t>(ir::SizeOf(type.dtype));
  auto bytes = std::make_shared<std::vector<std::byte>>(numbers.size() * size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!std::isfinite(ir::RoundTo(type.dtype, numbers[i]))) return kAbsent;
    ir::WriteElement(type.dtype, numbers[i], &(*bytes)[i * size]);
  }
  return AddValue(graph, name, std::move(type), std::move(bytes));
}

// An operation of the form source * scale + shift, with one number per channel (dimension 1).
struct Affine {
  ValueId source;
  std::vector<double> scale, shift;
};

std::optional<Affine> FromBatchNorm(const Graph& graph, const Node& node) {
  if (IntAttribute(node, "training_mode", 0) != 0 || node.inputs.size() != 5) return std::nullopt;
  if (StringAttribute(node, "layout", "NCHW") != "NCHW") return std::nullopt;
  std::vector<std::vector<double>> parameters;
  for (size_t i = 1; i < 5; ++i) {
    if (!IsFloatConstant(graph, node.inputs[i])) return std::nullopt;
    parameters.push_back(NumbersOf(graph.values[node.inputs[i]]));
  }
  const double epsilon = FloatAttribute(node, "epsilon", 1e-5);
  Affine affine{node.inputs[0], {}, {}};
  for (size_t c = 0; c < parameters[0].size(); ++c) {
    const double scale = parameters[0][c] / std::sqrt(parameters[3][c] + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(parameters[1][c] - parameters[2][c] * scale);
  }
  return affine;
}

// Returns the constant as one number per channel of a tensor of this shape, if it broadcasts that way.
std::optional<std::vector<double>> PerChannel(const Value& constant, const ir::Shape& shape) {
  if (!shape[1].IsFixed()) return std::nullopt;
  const int64_t channels = shape[1].value(), elements = constant.type.elements().value();
  if (elements == 1) return std::vector<double>(static_cast<size_t>(channels), NumbersOf(constant)[0]);
  const size_t rank = constant.type.shape.size(),
               from_end = shape.size() - 1;  // distance of dimension 1 from the last dimension
  if (elements != channels || rank < from_end || rank > shape.size()) return std::nullopt;
  if (constant.type.shape[rank - from_end] != channels) return std::nullopt;
  return NumbersOf(constant);
}

// Matches a product with, a sum with, or a difference to one number per channel.
std::optional<Affine> FromArithmetic(const Graph& graph, const Node& node) {
  const bool mul = Is(node, "Mul"), add = Is(node, "Add"), sub = Is(node, "Sub");
  if ((!mul && !add && !sub) || node.inputs.size() != 2) return std::nullopt;
  for (size_t i = 0; i < (sub ? 1u : 2u); ++i) {
    const Value& x = graph.values[node.inputs[i]];
    const ValueId constant = node.inputs[1 - i];
    if (!IsFloatConstant(graph, constant) || x.data != nullptr || x.type.shape.size() < 2) continue;
    if (x.type != graph.values[node.outputs[0]].type) continue;
    std::optional<std::vector<double>> values = PerChannel(graph.values[constant], x.type.shape);
    if (!values) continue;
    const size_t channels = values->size();
    if (mul) return Affine{node.inputs[i], *std::move(values), std::vector<double>(channels, 0)};
    for (double& value : *values) value = sub ? -value : value;
    return Affine{node.inputs[i], std::vector<double>(channels, 1), *std::move(values)};
  }
  return std::nullopt;
}

std::optional<Affine> FindAffine(const Graph& graph, const Node& node) {
  if (node.outputs[0] == kAbsent) return std::nullopt;
  return Is(node, "BatchNormalization") ? FromBatchNorm(graph, node) : FromArithmetic(graph, node);
}

// A layer whose weights can absorb a scale per output channel.
struct Layer {
  Node node;
  int64_t channels;
};

std::optional<Layer> FindLayer(const Graph& graph, const UseDefView& view, ValueId output) {
  const Node* node = view.Producer(output);
  if (node == nullptr || !node->domain.empty() || view.OnlyConsumer(output) == nullptr) return std::nullopt;
  const bool conv = node->op == "Conv" || node->op == "ConvTranspose";
  if ((!conv && node->op != "Gemm") || node->inputs.size() < 2 || !IsFloatConstant(graph, node->inputs[1])) {
    return std::nullopt;
  }
  const bool has_bias = HasInput(*node, 2);
  if (has_bias && !IsFloatConstant(graph, node->inputs[2])) return std::nullopt;
  if (!conv && (FloatAttribute(*node, "alpha", 1) != 1 || FloatAttribute(*node, "beta", 1) != 1)) return std::nullopt;
  if (!graph.values[output].type.shape[1].IsFixed()) return std::nullopt;
  const int64_t channels = graph.values[output].type.shape[1].value();
  // The third input of a Gemm may also be one number, a column or a matrix.
  const ir::Shape row = {channels};
  const ir::Shape bias = has_bias ? graph.values[node->inputs[2]].type.shape : row;
  if (bias != row && bias != ir::Shape{1, channels}) return std::nullopt;
  return Layer{*node, channels};
}

// The output channel of element `i` of the weights.
class ChannelOf {
 public:
  ChannelOf(const Layer& layer, const std::vector<int64_t>& shape) {
    const auto product = [&](size_t from) {
      int64_t p = 1;
      for (size_t d = from; d < shape.size(); ++d) p *= shape[d];
      return p;
    };
    if (layer.node.op == "ConvTranspose") {  // [inputs, outputs / group, ...]
      inner_ = product(2);
      modulo_ = shape[1];
      const int64_t group = std::max<int64_t>(IntAttribute(layer.node, "group", 1), 1);
      per_group_ = product(1) * (shape[0] / group);
    } else if (layer.node.op == "Gemm" && IntAttribute(layer.node, "transB", 0) == 0) {  // [inputs, outputs]
      modulo_ = shape[1];
    } else {  // [outputs, ...]
      inner_ = product(1);
      modulo_ = shape[0];
    }
  }
  int64_t operator()(int64_t i) const {
    const int64_t within = (i / inner_) % modulo_;
    return per_group_ > 0 ? i / per_group_ * modulo_ + within : within;
  }

 private:
  int64_t inner_ = 1, modulo_ = 1, per_group_ = 0;
};

// Returns the scaled weights; kAbsent if an element overflows the weights' type.
ValueId ScaleWeights(Graph& graph, const Layer& layer, const std::vector<double>& scale) {
  const ValueId id = layer.node.inputs[1];
  if (std::all_of(scale.begin(), scale.end(), [](double s) { return s == 1; })) return id;
  const Value weights = graph.values[id];
  const ir::DType dtype = weights.type.dtype;
  const size_t size = static_cast<size_t>(ir::SizeOf(dtype));
  auto scaled = std::make_shared<std::vector<std::byte>>(*weights.data);
  const ChannelOf channel_of(layer, ir::Values(weights.type.shape));
  const int64_t count = weights.type.elements().value();
  for (int64_t i = 0; i < count; ++i) {
    std::byte* at = &(*scaled)[static_cast<size_t>(i) * size];
    const double number = ir::ElementAsDouble(dtype, at) * scale[static_cast<size_t>(channel_of(i))];
    if (!std::isfinite(ir::RoundTo(dtype, number))) return kAbsent;
    ir::WriteElement(dtype, number, at);
  }
  return AddValue(graph, weights.name, weights.type, std::move(scaled));
}

// Returns the layer with scale and shift folded in; kAbsent if they do not fit.
absl::StatusOr<ValueId> Rebuild(Graph& graph, const Layer& layer, const Affine& affine) {
  Node node = layer.node;
  const ValueId weights = ScaleWeights(graph, layer, affine.scale);
  std::vector<double> bias(static_cast<size_t>(layer.channels), 0);
  if (HasInput(node, 2)) bias = NumbersOf(graph.values[node.inputs[2]]);
  for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * affine.scale[c] + affine.shift[c];
  const ir::DType dtype = graph.values[node.inputs[1]].type.dtype;
  node.inputs.resize(3);
  node.inputs[2] = AddNumbers(graph, node.name + ".bias", {dtype, {layer.channels}}, bias);
  node.inputs[1] = weights;
  if (weights == kAbsent || node.inputs[2] == kAbsent) return kAbsent;
  node.outputs = {kNewValue};
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddNode(graph, std::move(node)));
  return outputs[0];
}

absl::StatusOr<bool> FoldOnce(Graph& graph) {
  const size_t count = graph.nodes.size();
  std::map<ValueId, ValueId> replacements;
  const UseDefView view(graph);
  Readers readers(graph);
  for (size_t i = 0; i < count; ++i) {
    const Node node = graph.nodes[i];
    const std::optional<Affine> affine = FindAffine(graph, node);
    if (!affine || replacements.contains(affine->source)) continue;
    const std::optional<Layer> layer = FindLayer(graph, view, affine->source);
    if (!layer) continue;
    HONE_ASSIGN_OR_RETURN(const ValueId rebuilt, Rebuild(graph, *layer, *affine));
    if (rebuilt == kAbsent) continue;
    replacements[node.outputs[0]] = rebuilt;
    readers.Redirect(graph, node.outputs[0], rebuilt);
    readers.Drop(graph, layer->node);
    readers.Drop(graph, node);
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return !replacements.empty();
}

// Reshapes [C] so that it broadcasts over dimension 1 of a tensor of this rank.
std::vector<int64_t> ChannelShape(size_t channels, size_t rank) {
  std::vector<int64_t> shape(std::max<size_t>(rank, 2) - 1, 1);
  shape[0] = static_cast<int64_t>(channels);
  return shape;
}

// Replaces a BatchNormalization that no layer absorbs by a product and a sum.
absl::StatusOr<ValueId> SplitBatchNorm(Graph& graph, const Node& node) {
  if (!Is(node, "BatchNormalization")) return kAbsent;
  const std::optional<Affine> affine = FromBatchNorm(graph, node);
  if (!affine) return kAbsent;
  const TensorType source = graph.values[affine->source].type;
  const ir::DType computed = ComputeType(source.dtype);  // half types are rounded once, at the end
  const TensorType type{computed, ChannelShape(affine->scale.size(), source.shape.size())};
  const ValueId scale = AddNumbers(graph, node.name + ".scale", type, affine->scale);
  const ValueId shift = AddNumbers(graph, node.name + ".shift", type, affine->shift);
  if (scale == kAbsent || shift == kAbsent) return kAbsent;
  HONE_ASSIGN_OR_RETURN(ValueId x, AddCast(graph, affine->source, computed));
  HONE_ASSIGN_OR_RETURN(x, AddOp(graph, "Mul", {x, scale}));
  HONE_ASSIGN_OR_RETURN(x, AddOp(graph, "Add", {x, shift}));
  return AddCast(graph, x, source.dtype);
}

}  // namespace

absl::Status FoldScale(Graph& graph) {
  bool changed = true;
  while (changed) {
    HONE_ASSIGN_OR_RETURN(changed, FoldOnce(graph));
  }
  return LowerNodes(graph, SplitBatchNorm);
}

}  // namespace hone::graph
