#include "compiler/graph/passes/fold_scale.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/view.h"

namespace hone::graph {
namespace {

bool IsFloatConstant(const Graph& graph, ValueId id) {
  return id != kAbsent && graph.values[id].data != nullptr && graph.values[id].type.dtype == ir::DType::kFloat32;
}

// x * scale + shift, with one number per channel (dimension 1).
struct Affine {
  std::vector<float> scale, shift;
};

std::optional<Affine> FromBatchNorm(const Graph& graph, const Node& node) {
  if (IntAttribute(node, "training_mode", 0) != 0 || node.inputs.size() != 5) return std::nullopt;
  std::vector<std::vector<float>> parameters;
  for (size_t i = 1; i < 5; ++i) {
    if (!IsFloatConstant(graph, node.inputs[i])) return std::nullopt;
    parameters.push_back(ReadConstant<float>(graph.values[node.inputs[i]]));
  }
  if (graph.values[node.inputs[0]].type.dtype != ir::DType::kFloat32) return std::nullopt;
  const double epsilon = FloatAttribute(node, "epsilon", 1e-5);
  Affine affine;
  for (size_t c = 0; c < parameters[0].size(); ++c) {
    const double scale = parameters[0][c] / std::sqrt(static_cast<double>(parameters[3][c]) + epsilon);
    affine.scale.push_back(static_cast<float>(scale));
    affine.shift.push_back(static_cast<float>(parameters[1][c] - parameters[2][c] * scale));
  }
  return affine;
}

// [C] as something that broadcasts over dimension 1 of a tensor of this rank.
std::vector<int64_t> ChannelShape(size_t channels, size_t rank) {
  std::vector<int64_t> shape(std::max<size_t>(rank, 2) - 1, 1);
  shape[0] = static_cast<int64_t>(channels);
  return shape;
}

absl::Status SplitBatchNorms(Graph& graph) {
  const size_t count = graph.nodes.size();
  std::map<ValueId, ValueId> replacements;
  for (size_t i = 0; i < count; ++i) {
    const Node node = graph.nodes[i];
    if (!Is(node, "BatchNormalization") || node.outputs[0] == kAbsent) continue;
    const std::optional<Affine> affine = FromBatchNorm(graph, node);
    if (!affine) continue;
    const size_t rank = graph.values[node.inputs[0]].type.shape.size();
    const std::vector<int64_t> shape = ChannelShape(affine->scale.size(), rank);
    const ValueId scale = AddConstant<float>(graph, node.name + ".scale", ir::DType::kFloat32, shape, affine->scale);
    const ValueId shift = AddConstant<float>(graph, node.name + ".shift", ir::DType::kFloat32, shape, affine->shift);
    HONE_ASSIGN_OR_RETURN(const ValueId product, AddOp(graph, "Mul", {node.inputs[0], scale}));
    HONE_ASSIGN_OR_RETURN(replacements[node.outputs[0]], AddOp(graph, "Add", {product, shift}));
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return absl::OkStatus();
}

// The constant as one number per channel of a tensor of this shape, if that is how it broadcasts.
std::optional<std::vector<float>> PerChannel(const Value& constant, const std::vector<int64_t>& shape) {
  const int64_t channels = shape[1], elements = constant.type.elements();
  std::vector<float> values = ReadConstant<float>(constant);
  if (elements == 1) return std::vector<float>(channels, values[0]);
  const size_t rank = constant.type.shape.size(), from_end = shape.size() - 1;  // dimension 1, counted from the end
  if (elements != channels || rank < from_end || rank > shape.size()) return std::nullopt;
  if (constant.type.shape[rank - from_end] != channels) return std::nullopt;
  return values;
}

// A layer whose weights can take a scale per output channel.
struct Layer {
  Node node;
  int64_t channels;
};

std::optional<Layer> FindLayer(const Graph& graph, const View& view, ValueId output) {
  const Node* node = view.Producer(output);
  if (node == nullptr || !node->domain.empty() || view.OnlyConsumer(output) == nullptr) return std::nullopt;
  const bool conv = node->op == "Conv" || node->op == "ConvTranspose";
  if ((!conv && node->op != "Gemm") || node->inputs.size() < 2 || !IsFloatConstant(graph, node->inputs[1])) {
    return std::nullopt;
  }
  const bool has_bias = HasInput(*node, 2);
  if (has_bias && !IsFloatConstant(graph, node->inputs[2])) return std::nullopt;
  if (!conv && (FloatAttribute(*node, "alpha", 1) != 1 || FloatAttribute(*node, "beta", 1) != 1)) return std::nullopt;
  const int64_t channels = graph.values[output].type.shape[1];
  // What a Gemm adds may also be one number, a column or a matrix.
  const std::vector<int64_t> row = {channels};
  const std::vector<int64_t> bias = has_bias ? graph.values[node->inputs[2]].type.shape : row;
  if (bias != row && bias != std::vector<int64_t>{1, channels}) return std::nullopt;
  return Layer{*node, channels};
}

// The output channel that element `i` of the weights belongs to.
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

ValueId ScaleWeights(Graph& graph, const Layer& layer, const std::vector<float>& scale) {
  const ValueId id = layer.node.inputs[1];
  if (std::all_of(scale.begin(), scale.end(), [](float s) { return s == 1; })) return id;
  const Value weights = graph.values[id];
  std::vector<float> scaled = ReadConstant<float>(weights);
  const ChannelOf channel_of(layer, weights.type.shape);
  for (size_t i = 0; i < scaled.size(); ++i) scaled[i] *= scale[channel_of(static_cast<int64_t>(i))];
  return AddConstant<float>(graph, weights.name, ir::DType::kFloat32, weights.type.shape, scaled);
}

absl::StatusOr<ValueId> Rebuild(Graph& graph, const Layer& layer, const Affine& affine) {
  Node node = layer.node;
  node.inputs[1] = ScaleWeights(graph, layer, affine.scale);
  std::vector<float> bias(layer.channels, 0.0f);
  const bool has_bias = HasInput(node, 2);
  if (has_bias) bias = ReadConstant<float>(graph.values[node.inputs[2]]);
  for (size_t c = 0; c < bias.size(); ++c) bias[c] = bias[c] * affine.scale[c] + affine.shift[c];
  node.inputs.resize(3);
  node.inputs[2] = AddConstant<float>(graph, node.name + ".bias", ir::DType::kFloat32, {layer.channels}, bias);
  node.outputs = {kNewValue};
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AddNode(graph, std::move(node)));
  return outputs[0];
}

// The node as scale or shift of what it reads; kAbsent source if it is neither.
std::optional<Affine> FromArithmetic(const Graph& graph, const Node& node, ValueId* source) {
  const bool mul = Is(node, "Mul"), add = Is(node, "Add"), sub = Is(node, "Sub");
  if ((!mul && !add && !sub) || node.inputs.size() != 2) return std::nullopt;
  for (size_t i = 0; i < (sub ? 1u : 2u); ++i) {
    const Value& x = graph.values[node.inputs[i]];
    const ValueId constant = node.inputs[1 - i];
    if (!IsFloatConstant(graph, constant) || x.data != nullptr || x.type.shape.size() < 2) continue;
    if (x.type != graph.values[node.outputs[0]].type) continue;
    std::optional<std::vector<float>> values = PerChannel(graph.values[constant], x.type.shape);
    if (!values) continue;
    *source = node.inputs[i];
    if (mul) return Affine{*values, std::vector<float>(values->size(), 0.0f)};
    for (float& value : *values) value = sub ? -value : value;
    return Affine{std::vector<float>(values->size(), 1.0f), *values};
  }
  return std::nullopt;
}

absl::StatusOr<bool> FoldOnce(Graph& graph) {
  const size_t count = graph.nodes.size();
  std::map<ValueId, ValueId> replacements;
  const View view(graph);
  for (size_t i = 0; i < count; ++i) {
    const Node node = graph.nodes[i];
    ValueId source = kAbsent;
    const std::optional<Affine> affine = FromArithmetic(graph, node, &source);
    if (!affine || replacements.contains(source)) continue;
    const std::optional<Layer> layer = FindLayer(graph, view, source);
    if (!layer) continue;
    HONE_ASSIGN_OR_RETURN(replacements[node.outputs[0]], Rebuild(graph, *layer, *affine));
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return !replacements.empty();
}

}  // namespace

absl::Status FoldScale(Graph& graph) {
  HONE_RETURN_IF_ERROR(SplitBatchNorms(graph));
  bool changed = true;
  while (changed) {
    HONE_ASSIGN_OR_RETURN(changed, FoldOnce(graph));
  }
  return absl::OkStatus();
}

}  // namespace hone::graph
