// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/layers.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::quantize {
namespace {

using onnx::NodeProto;

// How an operator follows products.
enum class Role : uint8_t {
  kNone,
  kProduct,
  kMoves,     // its output has elements of its input, and needs no other range
  kCombines,  // it computes with elements
  kBounds,    // Relu or Clip; directly after a layer it is computed before rounding, and needs no range of its own
};

Role RoleOf(const NodeProto& node) {
  if (!IsOnnx(node)) return Role::kNone;
  const std::string& op = node.op_type();
  const auto is_one_of = [&](auto... names) { return ((op == names) || ...); };
  if (is_one_of("Conv", "ConvTranspose", "MatMul", "Gemm")) return Role::kProduct;
  if (is_one_of("MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Concat", "Slice", "DepthToSpace",
                "SpaceToDepth", "Split", "Expand")) {
    return Role::kMoves;
  }
  if (is_one_of("Relu", "Clip")) return Role::kBounds;
  if (is_one_of("Add", "Mul", "AveragePool", "GlobalAveragePool", "Sigmoid", "HardSigmoid", "HardSwish", "LeakyRelu",
                "Resize")) {
    return Role::kCombines;
  }
  return Role::kNone;
}

float FloatOf(const NodeProto& node, std::string_view name, float fallback) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? fallback : attribute->f();
}

class LayerFinder {
 public:
  LayerFinder(const ModelFile& model, const std::set<std::string>& floats, bool per_channel)
      : model_(model), floats_(floats), per_channel_(per_channel) {
    for (const NodeProto& node : model.graph().node()) {
      for (const std::string& input : node.input()) ++uses_[input];
    }
    for (const onnx::ValueInfoProto& output : model.graph().output()) uses_[output.name()] += 2;  // it must stay
    for (const onnx::ValueInfoProto& input : model.graph().input()) eight_bits_.insert(input.name());
  }

  Layers Find() {
    for (int i = 0; i < model_.graph().node_size(); ++i) Visit(i);
    KeepThoseBeforeProducts();
    AssignRanges();
    return std::move(result_);
  }

 private:
  const NodeProto& NodeOf(const Layer& layer) const { return model_.graph().node(layer.node); }
  bool IsFloat(const std::string& value) const { return floats_.contains(value); }
  bool IsConstant(const std::string& value) const { return model_.FindConstant(value).has_value(); }

  void Visit(int index) {
    const NodeProto& node = model_.graph().node(index);
    const Role role = RoleOf(node);
    if (FollowsExactly(node, role)) {
      eight_bits_.insert(node.output(0));
      exact_.insert(node.output(0));
      return;
    }
    std::optional<Layer> layer = role == Role::kNone      ? std::nullopt
                                 : role == Role::kProduct ? ReadProduct(node)
                                                          : ReadFollower(node);
    if (!layer.has_value()) return;
    layer->node = index;
    layer->op = node.op_type();
    layer->name = node.name().empty() ? fmt::format("{}_{}", node.op_type(), index) : node.name();
    for (const std::string& output : node.output()) eight_bits_.insert(output);
    if (role != Role::kMoves) exact_.insert(node.output(0));
    result_.layers.push_back(*std::move(layer));
  }

  // Whether the node continues a layer before the result is rounded: a bound, or a constant that is added.
  bool FollowsExactly(const NodeProto& node, Role role) const {
    if (node.input().empty() || node.output_size() != 1) return false;
    const auto continues = [&](const std::string& input) { return exact_.contains(input) && uses_.at(input) == 1; };
    if (role == Role::kBounds) {
      const auto constant = [&](const std::string& bound) { return bound.empty() || IsConstant(bound); };
      return continues(node.input(0)) && std::all_of(node.input().begin() + 1, node.input().end(), constant);
    }
    if (node.op_type() != "Add" || role == Role::kNone) return false;
    return (continues(node.input(0)) && IsConstant(node.input(1))) ||
           (continues(node.input(1)) && IsConstant(node.input(0)));
  }

  int ValueNumber(const std::string& name) {
    const auto [found, added] = numbers_.emplace(name, static_cast<int>(result_.values.size()));
    if (added) result_.values.push_back({.name = name, .layers = {}});
    return found->second;
  }

  std::optional<Layer> ReadProduct(const NodeProto& node) {
    if (node.input_size() < 2 || !IsFloat(node.input(0)) || !IsFloat(node.output(0))) return std::nullopt;
    if (node.op_type() == "Gemm" &&
        (IntAttribute(node, "transA", 0) != 0 || FloatOf(node, "alpha", 1) != 1 || FloatOf(node, "beta", 1) != 1)) {
      return std::nullopt;
    }
    Layer layer{.name = {}, .op = {}, .product = true, .reads = {}, .weights = {}, .bias = {}};
    const std::optional<ConstantType> weights = model_.FindConstant(node.input(1));
    if (IsConstant(node.input(0)) || (weights.has_value() && weights->elements() == 0)) return std::nullopt;
    if (weights.has_value()) {
      layer.weights = {node.input(1), per_channel_ ? ChannelAxis(node, *weights) : -1};
      layer.weight_bytes = weights->elements() * SizeOf(DType::kFloat32);
    } else if (node.op_type() != "MatMul" || !IsFloat(node.input(1))) {
      return std::nullopt;
    }
    if (node.input_size() > 2 && !node.input(2).empty()) {
      if (!IsBias(node.input(2), node, weights)) return std::nullopt;
      layer.bias = node.input(2);
    }
    layer.reads.push_back(ValueNumber(node.input(0)));
    if (!weights.has_value()) layer.reads.push_back(ValueNumber(node.input(1)));
    return layer;
  }

  // The axis of the weights along which the output's channels lie.
  static int64_t ChannelAxis(const NodeProto& node, const ConstantType& weights) {
    const auto rank = static_cast<int64_t>(weights.dims.size());
    if (node.op_type() == "Conv") return 0;
    if (node.op_type() == "ConvTranspose") return IntAttribute(node, "group", 1) == 1 ? 1 : -1;
    if (node.op_type() == "Gemm") return IntAttribute(node, "transB", 0) != 0 ? 0 : 1;
    return rank == 2 ? 1 : -1;
  }

  // Whether the constant has one element for each channel.
  bool IsBias(const std::string& name, const NodeProto& node, const std::optional<ConstantType>& weights) const {
    const std::optional<ConstantType> bias = model_.FindConstant(name);
    if (!bias.has_value() || bias->dims.size() != 1 || !weights.has_value()) return false;
    const std::string& op = node.op_type();
    const int64_t groups = IntAttribute(node, "group", 1);
    const int64_t axis = op == "Conv" ? 0 : op == "ConvTranspose" ? 1 : IntAttribute(node, "transB", 0) != 0 ? 0 : 1;
    const int64_t channels = weights->dims[static_cast<size_t>(axis)] * (op == "ConvTranspose" ? groups : 1);
    return bias->dims[0] == channels;
  }

  // An operator whose inputs come from layers or from outside.
  std::optional<Layer> ReadFollower(const NodeProto& node) {
    const bool many = node.op_type() == "Concat" || node.op_type() == "Add" || node.op_type() == "Mul";
    const int data = many ? node.input_size() : 1;
    if (node.output().empty() || !IsFloat(node.output(0))) return std::nullopt;
    if (node.op_type() == "MaxPool" && node.output_size() > 1) return std::nullopt;  // it also tells where
    if (node.op_type() == "Resize" && !ResizesByNumbers(node)) return std::nullopt;
    Layer layer{.name = {}, .op = {}, .product = false, .reads = {}, .weights = {}, .bias = {}};
    for (int i = 0; i < data; ++i) {
      if (!IsFloat(node.input(i)) || IsConstant(node.input(i)) || !eight_bits_.contains(node.input(i))) {
        return std::nullopt;
      }
    }
    for (int i = 0; i < data; ++i) layer.reads.push_back(ValueNumber(node.input(i)));
    return layer;
  }

  // ONNX states no meaning of cubic coefficients for integers that all runtimes share.
  static bool ResizesByNumbers(const NodeProto& node) {
    const onnx::AttributeProto* mode = FindAttribute(node, "mode");
    return mode == nullptr || mode->s() == "nearest" || mode->s() == "linear";
  }

  // Drops followers from which no product follows by followers alone: what they compute stays in f32 anyway.
  void KeepThoseBeforeProducts() {
    std::set<std::string> wanted;  // values that a kept layer reads, or from which one follows exactly
    std::vector<Layer> kept;
    size_t next = result_.layers.size();
    for (int i = model_.graph().node_size() - 1; i >= 0; --i) {
      const NodeProto& node = model_.graph().node(i);
      const bool reaches = std::ranges::any_of(node.output(), [&](const std::string& o) { return wanted.contains(o); });
      if (next > 0 && result_.layers[next - 1].node == i) {
        Layer& layer = result_.layers[--next];
        if (!layer.product && !reaches) continue;
        for (const int value : layer.reads) wanted.insert(result_.values[static_cast<size_t>(value)].name);
        kept.push_back(std::move(layer));
      } else if (reaches && !node.output().empty() && exact_.contains(node.output(0))) {
        wanted.insert(node.input().begin(), node.input().end());
      }
    }
    std::ranges::reverse(kept);
    result_.layers = std::move(kept);
    DropValuesWithoutLayers();
  }

  void DropValuesWithoutLayers() {
    std::vector<int> numbers(result_.values.size(), -1);
    std::vector<LayerValue> values;
    for (size_t l = 0; l < result_.layers.size(); ++l) {
      for (int& value : result_.layers[l].reads) {
        int& number = numbers[static_cast<size_t>(value)];
        if (number < 0) {
          number = static_cast<int>(values.size());
          values.push_back(result_.values[static_cast<size_t>(value)]);
        }
        value = number;
        std::vector<int>& layers = values[static_cast<size_t>(number)].layers;
        if (layers.empty() || layers.back() != static_cast<int>(l)) layers.push_back(static_cast<int>(l));
      }
    }
    result_.values = std::move(values);
  }

  void AssignRanges() {
    std::map<std::string, int> numbers;
    for (size_t v = 0; v < result_.values.size(); ++v) numbers.emplace(result_.values[v].name, static_cast<int>(v));
    std::vector<int> parent(result_.values.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](int value) {
      while (parent[static_cast<size_t>(value)] != value) value = parent[static_cast<size_t>(value)];
      return value;
    };
    for (const Layer& layer : result_.layers) {
      const NodeProto& node = NodeOf(layer);
      if (RoleOf(node) != Role::kMoves) continue;
      const int first = root(layer.reads.front());
      for (const int read : layer.reads) parent[static_cast<size_t>(root(read))] = first;
      for (const std::string& output : node.output()) {
        const auto found = numbers.find(output);
        if (found == numbers.end()) continue;
        parent[static_cast<size_t>(root(found->second))] = first;
        result_.values[static_cast<size_t>(found->second)].derived = true;
      }
    }
    std::map<int, int> ranges;
    for (size_t v = 0; v < result_.values.size(); ++v) {
      const int range = root(static_cast<int>(v));
      result_.values[v].range = ranges.emplace(range, static_cast<int>(ranges.size())).first->second;
    }
    result_.ranges = static_cast<int>(ranges.size());
  }

  const ModelFile& model_;
  const std::set<std::string>& floats_;
  const bool per_channel_;
  std::map<std::string, int> uses_;   // how often nodes read a value; more for outputs of the model
  std::set<std::string> eight_bits_;  // results of layers, and inputs of the model
  std::set<std::string> exact_;       // results that are not rounded yet: a following bound is exact
  std::map<std::string, int> numbers_;
  Layers result_;
};

bool IsQuantizer(const NodeProto& node) {
  constexpr std::array kNames = {
      "QuantizeLinear",  "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger",
      "MatMulInteger",   "MatMulNBits",           "QAttention",  "QGemm",         "QLinearAdd",
      "DequantizeLinear"};
  return std::ranges::find(kNames, node.op_type()) != kNames.end();
}

}  // namespace

absl::StatusOr<Layers> FindLayers(const ModelFile& model, const std::set<std::string>& floats, bool per_channel) {
  for (const NodeProto& node : model.graph().node()) {
    if (!IsQuantizer(node)) continue;
    return absl::FailedPreconditionError(fmt::format(
        "the model is quantized already: it has a {} node, '{}'; give the model in f32", node.op_type(), node.name()));
  }
  Layers layers = LayerFinder(model, floats, per_channel).Find();
  if (layers.layers.empty()) {
    return absl::FailedPreconditionError(
        "there is nothing to quantize: no Conv, ConvTranspose, MatMul or Gemm computes with f32 and constant weights");
  }
  return layers;
}

bool IsQuantized(const LayerValue& value, const Choice& choice) {
  return std::ranges::any_of(value.layers, [&](int layer) { return choice[static_cast<size_t>(layer)]; });
}

}  // namespace hone::quantize
