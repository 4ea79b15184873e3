// SPDX-License-Identifier: Apache-2.0
// Which nodes of a model compute with 8 bits, and which values are quantized for them.
//
// A layer is a node of the outermost graph that an integer kernel can compute: a product, or an operator that stands
// between products. A value is quantized if, and only if, a chosen layer reads it, and only for its chosen layers. So a
// value between a layer and its Relu is not rounded, and neither is a result that only other nodes read. Not here:
// ranges and the rewrite. Start with FindLayers.
#ifndef HONE_DEPLOY_QUANTIZE_LAYERS_H_
#define HONE_DEPLOY_QUANTIZE_LAYERS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/quantize/model_file.h"

namespace hone::quantize {

// A constant operand of a product, which is quantized for each channel.
struct Weights {
  std::string name;  // empty: the layer has none
  int64_t axis = 0;  // of the channels; -1: one scale for all
};

struct Layer {
  int node = 0;            // its index in the graph
  std::string name, op;    // the node's name, or "Conv_12" by its operator and index
  bool product = false;    // it multiplies and adds; else it follows products
  std::vector<int> reads;  // inputs that are quantized: indices in Layers::values
  Weights weights;
  std::string bias;  // a constant that is added to sums in 32 bits; empty: none
  int64_t weight_bytes = 0;
};

// A value that is quantized if one of its layers is.
struct LayerValue {
  std::string name;
  int range = 0;            // its index; values with one index share it, so that moving elements needs no arithmetic
  bool derived = false;     // its values are those of other values of its range
  std::vector<int> layers;  // that read it
};

struct Layers {
  std::vector<Layer> layers;  // in the order of the file
  std::vector<LayerValue> values;
  int ranges = 0;  // how many there are
};

// floats: the names of the values of f32 that may be quantized. per_channel: whether constants may have a scale for
// each channel. FailedPrecondition: the model is quantized already, or has no layer.
absl::StatusOr<Layers> FindLayers(const ModelFile& model, const std::set<std::string>& floats, bool per_channel);

// Which layers compute with 8 bits, by their index. The others stay in f32.
using Choice = std::vector<bool>;

// Whether the value is quantized for the chosen layers.
bool IsQuantized(const LayerValue& value, const Choice& choice);

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_LAYERS_H_
