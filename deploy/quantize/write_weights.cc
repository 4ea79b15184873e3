// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/write_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace hone::quantize {
namespace {

using onnx::NodeProto;

constexpr int64_t kBlock = 32;  // elements that share a scale
constexpr float kByteSteps = 127;

// The weights of a MatMul or Gemm: a row for each channel of the output.
struct Rows {
  int64_t channels = 0, length = 0;
  std::vector<float> elements;
  std::span<const float> Row(int64_t channel) const {
    return std::span(elements).subspan(static_cast<size_t>(channel * length), static_cast<size_t>(length));
  }
};

absl::StatusOr<Rows> ReadRows(const ModelFile& model, const Layer& layer) {
  const std::vector<int64_t> dims = model.FindConstant(layer.weights.name)->dims;
  HONE_ASSIGN_OR_RETURN(std::vector<float> floats, model.ReadFloats(layer.weights.name));
  const NodeProto& node = model.graph().node(layer.node);
  if (IntAttribute(node, "transB", 0) != 0) return Rows{dims[0], dims[1], std::move(floats)};
  Rows rows{dims[1], dims[0], std::vector<float>(floats.size())};
  for (int64_t k = 0; k < rows.length; ++k) {
    for (int64_t n = 0; n < rows.channels; ++n) {
      rows.elements[static_cast<size_t>(n * rows.length + k)] = floats[static_cast<size_t>(k * rows.channels + n)];
    }
  }
  return rows;
}

// Integers from 0 to 2^bits - 1 with the zero point in the middle, and their scale, with the least squared error of a
// few scales. The element with the largest magnitude is at the lowest integer, which has no counterpart.
float QuantizeBlock(std::span<const float> block, int bits, std::vector<uint8_t>& integers) {
  const auto middle = static_cast<float>(1 << (bits - 1)), top = 2 * middle - 1;
  const float largest = *std::ranges::max_element(block, {}, [](float x) { return std::abs(x); });
  const auto round = [&](float x, float scale) { return std::clamp(std::nearbyint(x / scale) + middle, 0.0F, top); };
  float best_scale = 1;
  double best = -1;
  constexpr std::array kShrunk = {1.0F, 0.95F, 0.9F, 0.85F, 0.8F};
  for (const float part : largest == 0 ? std::span<const float>() : std::span<const float>(kShrunk)) {
    const float scale = -largest * part / middle;
    if (scale == 0) continue;  // too small a number to divide by
    double error = 0;
    for (const float x : block) {
      const double difference = static_cast<double>(round(x, scale) - middle) * scale - x;
      error += difference * difference;
    }
    if (best >= 0 && error >= best) continue;
    best = error;
    best_scale = scale;
  }
  for (const float x : block) integers.push_back(static_cast<uint8_t>(round(x, best_scale)));
  return best_scale;
}

class WeightWriter {
 public:
  WeightWriter(ModelFile& model, const Layers& layers) : model_(model), layers_(layers) {}

  template <typename Replace>
  absl::Status ReplaceLayers(const Choice& choice, const Replace& replace) {
    std::map<int, const Layer*> chosen;
    for (size_t l = 0; l < choice.size(); ++l) {
      if (choice[l]) chosen.emplace(layers_.layers[l].node, &layers_.layers[l]);
    }
    google::protobuf::RepeatedPtrField<NodeProto> nodes;
    for (int i = 0; i < model_.graph().node_size(); ++i) {
      if (const auto layer = chosen.find(i); layer != chosen.end()) {
        HONE_RETURN_IF_ERROR(replace(*layer->second));
      } else {
        made_.push_back(model_.graph().node(i));
      }
      for (NodeProto& made : made_) nodes.Add()->Swap(&made);
      made_.clear();
    }
    model_.graph().mutable_node()->Swap(&nodes);
    return absl::OkStatus();
  }

  absl::Status Blocks(const Layer& layer, int bits) {
    const NodeProto& node = model_.graph().node(layer.node);
    HONE_ASSIGN_OR_RETURN(const Constants weights,
                          Share(layer, [&](const Rows& rows) { return PackBlocks(layer.weights.name, rows, bits); }));
    NodeProto product =
        model_.NewNode("MatMulNBits", {node.input(0), weights.integers, weights.scales}, ResultOf(node, layer));
    product.set_domain("com.microsoft");
    SetInt(product, "K", weights.length);
    SetInt(product, "N", weights.channels);
    SetInt(product, "bits", bits);
    SetInt(product, "block_size", kBlock);
    made_.push_back(std::move(product));
    AddBias(node, layer);
    return absl::OkStatus();
  }

  absl::Status Dynamic(const Layer& layer) {
    const NodeProto& node = model_.graph().node(layer.node);
    HONE_ASSIGN_OR_RETURN(const Constants weights,
                          Share(layer, [&](const Rows& rows) { return QuantizeRows(layer.weights.name, rows); }));
    const Quantized x = QuantizeValue(node.input(0));
    const std::string out = node.output(0), sums = model_.NewName(out + "_sums"),
                      floats = model_.NewName(out + "_floats"), scale = model_.NewName(out + "_scale");
    made_.push_back(model_.NewNode("MatMulInteger", {x.integers, weights.integers, x.zero_point}, sums));
    made_.push_back(model_.NewNode("Cast", {sums}, floats));
    SetInt(made_.back(), "to", onnx::TensorProto::FLOAT);
    made_.push_back(model_.NewNode("Mul", {x.scale, weights.scales}, scale));
    made_.push_back(model_.NewNode("Mul", {floats, scale}, ResultOf(node, layer)));
    AddBias(node, layer);
    return absl::OkStatus();
  }

 private:
  // Names of constants, and the sizes of the weights that they stand for.
  struct Constants {
    std::string integers, scales;
    int64_t channels = 0, length = 0;
  };

  // The constants of the layer's weights. Layers that share weights share them.
  template <typename Make>
  absl::StatusOr<Constants> Share(const Layer& layer, const Make& make) {
    const int64_t transposed = IntAttribute(model_.graph().node(layer.node), "transB", 0);
    const auto [found, added] = constants_.try_emplace({layer.weights.name, transposed != 0});
    if (added) {
      HONE_ASSIGN_OR_RETURN(const Rows rows, ReadRows(model_, layer));
      found->second = make(rows);
    }
    return found->second;
  }

  Constants PackBlocks(const std::string& name, const Rows& rows, int bits) {
    const int64_t blocks = (rows.length + kBlock - 1) / kBlock, per_byte = 8 / bits;
    std::vector<uint8_t> packed;
    std::vector<float> scales;
    std::vector<float> block(static_cast<size_t>(kBlock));
    for (int64_t n = 0; n < rows.channels; ++n) {
      for (int64_t b = 0; b < blocks; ++b) {
        std::ranges::fill(block, 0.0F);  // the last block of a row may be longer than what is left of it
        const int64_t begin = b * kBlock, end = std::min(begin + kBlock, rows.length);
        std::ranges::copy(rows.Row(n).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                          block.begin());
        std::vector<uint8_t> integers;
        scales.push_back(QuantizeBlock(block, bits, integers));
        for (size_t i = 0; i < integers.size(); i += static_cast<size_t>(per_byte)) {
          packed.push_back(per_byte == 1 ? integers[i] : static_cast<uint8_t>(integers[i] | integers[i + 1] << 4));
        }
      }
    }
    return {model_.AddConstant(name + "_packed", {DType::kUInt8, {rows.channels, blocks, kBlock / per_byte}},
                               BytesOf(packed)),
            model_.AddConstant(name + "_scales", {DType::kFloat32, {rows.channels * blocks}}, BytesOf(scales)),
            rows.channels, rows.length};
  }

  // As MatMulInteger takes it: a column for each channel.
  Constants QuantizeRows(const std::string& name, const Rows& rows) {
    std::vector<int8_t> integers(rows.elements.size());
    std::vector<float> scales;
    for (int64_t n = 0; n < rows.channels; ++n) {
      float largest = 0;
      for (const float x : rows.Row(n)) largest = std::max(largest, std::abs(x));
      scales.push_back(largest > 0 ? std::max(largest / kByteSteps, std::numeric_limits<float>::min()) : 1);
      for (int64_t k = 0; k < rows.length; ++k) {
        const float steps = std::nearbyint(rows.Row(n)[static_cast<size_t>(k)] / scales.back());
        integers[static_cast<size_t>(k * rows.channels + n)] =
            static_cast<int8_t>(std::clamp(steps, -kByteSteps, kByteSteps));
      }
    }
    return {model_.AddConstant(name + "_quantized", {DType::kInt8, {rows.length, rows.channels}}, BytesOf(integers)),
            model_.AddConstant(name + "_scale", {DType::kFloat32, {rows.channels}}, BytesOf(scales)), rows.channels,
            rows.length};
  }

  struct Quantized {
    std::string integers, scale, zero_point;
  };

  // The value as u8; layers that read one value share it.
  Quantized QuantizeValue(const std::string& value) {
    Quantized& quantized = quantized_[value];
    if (!quantized.integers.empty()) return quantized;
    quantized = {model_.NewName(value + "_quantized"), model_.NewName(value + "_scale"),
                 model_.NewName(value + "_zero_point")};
    NodeProto node = model_.NewNode("DynamicQuantizeLinear", {value}, quantized.integers);
    node.add_output(quantized.scale);
    node.add_output(quantized.zero_point);
    made_.push_back(std::move(node));
    return quantized;
  }

  // The name of the product without its bias.
  std::string ResultOf(const NodeProto& node, const Layer& layer) {
    if (layer.bias.empty()) return node.output(0);
    return without_bias_ = model_.NewName(node.output(0) + "_product");
  }

  void AddBias(const NodeProto& node, const Layer& layer) {
    if (!layer.bias.empty()) made_.push_back(model_.NewNode("Add", {without_bias_, layer.bias}, node.output(0)));
  }

  ModelFile& model_;
  const Layers& layers_;
  std::vector<NodeProto> made_;  // in the place of the current node
  std::map<std::string, Quantized> quantized_;
  std::map<std::pair<std::string, bool>, Constants> constants_;  // by name of the weights, and whether transposed
  std::string without_bias_;
};

}  // namespace

Choice LayersWithWeights(const ModelFile& model, const Layers& layers) {
  Choice choice;
  for (const Layer& layer : layers.layers) {
    choice.push_back((layer.op == "MatMul" || layer.op == "Gemm") && !layer.weights.name.empty() &&
                     model.FindConstant(layer.weights.name)->dims.size() == 2);
  }
  return choice;
}

absl::Status WriteBlocks(ModelFile& model, const Layers& layers, const Choice& choice, int bits) {
  model.UseDomain("com.microsoft", 1);
  WeightWriter writer(model, layers);
  return writer.ReplaceLayers(choice, [&](const Layer& layer) { return writer.Blocks(layer, bits); });
}

absl::Status WriteDynamic(ModelFile& model, const Layers& layers, const Choice& choice) {
  WeightWriter writer(model, layers);
  return writer.ReplaceLayers(choice, [&](const Layer& layer) { return writer.Dynamic(layer); });
}

}  // namespace hone::quantize
