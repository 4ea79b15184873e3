// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/write_qdq.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/status.h"

namespace hone::quantize {
namespace {

using onnx::NodeProto;

constexpr float kWeightSteps = 127;  // symmetric: -127 to 127
constexpr float kBiasSteps = 2e9F;   // below 2^31

// Integers with a scale for each channel, or with one.
struct QuantizedConstant {
  std::string integers, scale, zero_point;  // names of constants
  std::vector<float> scales;
};

class QdqWriter {
 public:
  QdqWriter(ModelFile& model, const Layers& layers, const std::vector<ValueRange>& ranges)
      : model_(model), layers_(layers), ranges_(ranges) {}

  absl::Status Write(const Choice& choice) {
    for (size_t v = 0; v < layers_.values.size(); ++v) {
      if (!IsQuantized(layers_.values[v], choice)) continue;
      const std::string dequantized = InsertPair(v);
      for (const int layer : layers_.values[v].layers) {
        if (choice[static_cast<size_t>(layer)]) ReadInstead(layer, layers_.values[v].name, dequantized);
      }
    }
    for (size_t l = 0; l < layers_.layers.size(); ++l) {
      if (choice[l]) HONE_RETURN_IF_ERROR(QuantizeConstants(layers_.layers[l], /*switch_name=*/""));
    }
    PlaceNodes();
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> WriteSwitches() {
    std::vector<std::string> switches;
    for (const Layer& layer : layers_.layers) switches.push_back(AddSwitch(layer.name));
    for (size_t v = 0; v < layers_.values.size(); ++v) {
      const std::string& value = layers_.values[v].name;
      const std::string dequantized = InsertPair(v);
      for (const int layer : layers_.values[v].layers) {
        const std::string chosen = model_.NewName(value + "_chosen");
        const std::string& name = switches[static_cast<size_t>(layer)];
        made_.back().nodes.push_back(model_.NewNode("Where", {name, dequantized, value}, chosen));
        ReadInstead(layer, value, chosen);
      }
    }
    for (size_t l = 0; l < layers_.layers.size(); ++l) {
      HONE_RETURN_IF_ERROR(QuantizeConstants(layers_.layers[l], switches[l]));
    }
    PlaceNodes();
    return switches;
  }

 private:
  struct Made {
    std::string before;  // the value that is quantized; "": constants
    std::vector<NodeProto> nodes;
  };

  std::string AddSwitch(const std::string& hint) {
    onnx::ValueInfoProto& input = *model_.graph().add_input();
    input.set_name(model_.NewName(hint + "_quantizes"));
    input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
    input.mutable_type()->mutable_tensor_type()->mutable_shape();  // no dimensions
    return input.name();
  }

  template <typename T>
  std::string AddScalar(std::string_view hint, DType dtype, T value) {
    return model_.AddConstant(hint, {dtype, {}}, BytesOf(std::vector<T>{value}));
  }

  // Quantizes the value, and returns the name of the result in f32.
  std::string InsertPair(size_t v) {
    const LayerValue& value = layers_.values[v];
    const ByteScale scale = ScaleOf(ranges_[static_cast<size_t>(value.range)]);
    auto& [scale_name, zero_name] = scales_[value.range];
    if (scale_name.empty()) {
      scale_name = AddScalar(value.name + "_scale", DType::kFloat32, scale.scale);
      zero_name = AddScalar(value.name + "_zero_point", DType::kUInt8, scale.zero_point);
    }
    const std::string q = model_.NewName(value.name + "_quantized"), d = model_.NewName(value.name + "_dequantized");
    made_.push_back({value.name,
                     {model_.NewNode("QuantizeLinear", {value.name, scale_name, zero_name}, q),
                      model_.NewNode("DequantizeLinear", {q, scale_name, zero_name}, d)}});
    return d;
  }

  // Has the layer's node read another value.
  void ReadInstead(int layer, const std::string& value, const std::string& other) {
    NodeProto& node = *model_.graph().mutable_node(layers_.layers[static_cast<size_t>(layer)].node);
    std::ranges::replace(*node.mutable_input(), value, other);
  }

  absl::Status QuantizeConstants(const Layer& layer, const std::string& switch_name) {
    if (layer.weights.name.empty()) return absl::OkStatus();
    NodeProto& node = *model_.graph().mutable_node(layer.node);
    const float x_scale =
        ScaleOf(ranges_[static_cast<size_t>(layers_.values[static_cast<size_t>(layer.reads.front())].range)]).scale;
    std::vector<float> bias;
    if (!layer.bias.empty()) {
      HONE_ASSIGN_OR_RETURN(bias, model_.ReadFloats(layer.bias));
    }
    HONE_ASSIGN_OR_RETURN(const QuantizedConstant weights, QuantizeWeights(layer, bias, x_scale));
    *node.mutable_input(1) = Dequantize(layer.weights.name, weights, layer.weights.axis, switch_name);
    if (bias.empty()) return absl::OkStatus();
    // With an exact bias a layer would not be a product of integers for all runtimes.
    std::vector<int32_t> integers(bias.size());
    QuantizedConstant quantized{.integers = {}, .scale = {}, .zero_point = {}, .scales = weights.scales};
    for (float& scale : quantized.scales) scale = std::max(scale * x_scale, std::numeric_limits<float>::min());
    for (size_t c = 0; c < bias.size(); ++c) {
      const double steps = static_cast<double>(bias[c]) / quantized.scales[quantized.scales.size() == 1 ? 0 : c];
      integers[c] = static_cast<int32_t>(std::clamp(std::nearbyint(steps), -2147483647.0, 2147483647.0));
    }
    const bool channels = quantized.scales.size() > 1;
    std::vector<int64_t> dims;
    if (channels) dims.push_back(static_cast<int64_t>(quantized.scales.size()));
    quantized.integers = model_.AddConstant(layer.bias + "_quantized",
                                            {DType::kInt32, {static_cast<int64_t>(bias.size())}}, BytesOf(integers));
    quantized.scale = model_.AddConstant(layer.bias + "_scale", {DType::kFloat32, dims}, BytesOf(quantized.scales));
    *node.mutable_input(2) = Dequantize(layer.bias, quantized, channels ? 0 : -1, switch_name);
    return absl::OkStatus();
  }

  // The name of the value that the layer reads instead of the constant.
  std::string Dequantize(const std::string& constant, const QuantizedConstant& quantized, int64_t axis,
                         const std::string& switch_name) {
    const std::string d = model_.NewName(constant + "_dequantized");
    std::vector<std::string> inputs = {quantized.integers, quantized.scale};
    if (!quantized.zero_point.empty()) inputs.push_back(quantized.zero_point);
    Made made{"", {model_.NewNode("DequantizeLinear", std::move(inputs), d)}};
    if (axis >= 0) SetInt(made.nodes.back(), "axis", axis);
    std::string used = d;
    if (!switch_name.empty()) {
      used = model_.NewName(constant + "_chosen");
      made.nodes.push_back(model_.NewNode("Where", {switch_name, d, constant}, used));
    }
    made_.push_back(std::move(made));
    return used;
  }

  // bias: of the layer, or empty. A channel's scale is large enough for its bias to be an i32. Layers with equal
  // weights and scales share the constants.
  absl::StatusOr<QuantizedConstant> QuantizeWeights(const Layer& layer, const std::vector<float>& bias, float x_scale) {
    const std::string& name = layer.weights.name;
    HONE_ASSIGN_OR_RETURN(const std::vector<float> floats, model_.ReadFloats(name));
    const std::vector<int64_t> dims = model_.FindConstant(name)->dims;
    const int64_t axis = layer.weights.axis;
    size_t inner = 1, channels = 1;
    if (axis >= 0) {
      channels = static_cast<size_t>(dims[static_cast<size_t>(axis)]);
      for (size_t d = static_cast<size_t>(axis) + 1; d < dims.size(); ++d) inner *= static_cast<size_t>(dims[d]);
    } else {
      inner = floats.size();
    }
    std::vector<float> largest(channels);
    for (size_t i = 0; i < floats.size(); ++i) {
      float& most = largest[i / inner % channels];
      most = std::max(most, std::abs(floats[i]));
    }
    QuantizedConstant result;
    for (size_t c = 0; c < channels; ++c) {
      float scale = largest[c] > 0 ? largest[c] / kWeightSteps : 1 / kWeightSteps;
      scale = std::max(scale, std::numeric_limits<float>::min() * 1e6F);
      const size_t first = channels == 1 ? 0 : c, last = channels == 1 ? bias.size() : std::min(c + 1, bias.size());
      for (size_t b = first; b < last; ++b) scale = std::max(scale, std::abs(bias[b]) / x_scale / kBiasSteps);
      result.scales.push_back(scale);
    }
    QuantizedConstant& shared = shared_[{name, axis}];
    if (shared.scales == result.scales) return shared;
    std::vector<int8_t> integers(floats.size());
    for (size_t i = 0; i < floats.size(); ++i) {
      const float steps = floats[i] / result.scales[i / inner % channels];
      integers[i] = static_cast<int8_t>(std::clamp(std::nearbyint(steps), -kWeightSteps, kWeightSteps));
    }
    const std::vector<int64_t> scale_dims =
        axis >= 0 ? std::vector{static_cast<int64_t>(channels)} : std::vector<int64_t>{};
    result.integers = model_.AddConstant(name + "_quantized", {DType::kInt8, dims}, BytesOf(integers));
    result.scale = model_.AddConstant(name + "_scale", {DType::kFloat32, scale_dims}, BytesOf(result.scales));
    result.zero_point =
        model_.AddConstant(name + "_zero_point", {DType::kInt8, scale_dims}, BytesOf(std::vector<int8_t>(channels)));
    return shared = std::move(result);
  }

  // Puts the new nodes where their inputs are known: those of constants and of inputs at the beginning, others after
  // the node that makes their value.
  void PlaceNodes() {
    std::map<std::string, std::vector<NodeProto>> after;
    std::set<std::string> made_by_nodes;
    for (const NodeProto& node : model_.graph().node())
      made_by_nodes.insert(node.output().begin(), node.output().end());
    google::protobuf::RepeatedPtrField<NodeProto> placed;
    for (Made& made : made_) {
      const bool late = made_by_nodes.contains(made.before);
      for (NodeProto& node : made.nodes) {
        if (late) {
          after[made.before].push_back(std::move(node));
        } else {
          *placed.Add() = std::move(node);
        }
      }
    }
    for (NodeProto& node : *model_.graph().mutable_node()) {
      const std::vector<std::string> outputs(node.output().begin(), node.output().end());
      placed.Add()->Swap(&node);
      for (const std::string& output : outputs) {
        for (NodeProto& made : after[output]) placed.Add()->Swap(&made);
      }
    }
    model_.graph().mutable_node()->Swap(&placed);
  }

  ModelFile& model_;
  const Layers& layers_;
  const std::vector<ValueRange>& ranges_;
  std::map<int, std::pair<std::string, std::string>> scales_;            // by range: names of scale and zero point
  std::map<std::pair<std::string, int64_t>, QuantizedConstant> shared_;  // weights, by name and axis
  std::vector<Made> made_;
};

}  // namespace

absl::Status WriteQdq(ModelFile& model, const Layers& layers, const Choice& choice,
                      const std::vector<ValueRange>& ranges) {
  return QdqWriter(model, layers, ranges).Write(choice);
}

absl::StatusOr<std::vector<std::string>> WriteSwitches(ModelFile& model, const Layers& layers,
                                                       const std::vector<ValueRange>& ranges) {
  return QdqWriter(model, layers, ranges).WriteSwitches();
}

}  // namespace hone::quantize
