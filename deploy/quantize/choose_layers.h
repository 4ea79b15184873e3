// SPDX-License-Identifier: Apache-2.0
// Finds the layers to leave in f32 so that a model stays as accurate as its user asks.
//
// One model with a switch for each layer (write_qdq.h) is compiled once. Each layer is quantized
// alone to see its error; then the fewest of the worst layers are left in f32 with which all outputs are accurate
// enough. The errors of layers add up like those of independent noise, so the number is found by bisection.
#ifndef HONE_DEPLOY_QUANTIZE_CHOOSE_LAYERS_H_
#define HONE_DEPLOY_QUANTIZE_CHOOSE_LAYERS_H_

#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/quantize/compiled_model.h"
#include "deploy/quantize/layers.h"
#include "deploy/quantize/model_file.h"
#include "deploy/quantize/samples.h"
#include "deploy/quantize/value_range.h"

namespace hone::quantize {

struct LayerChoice {
  Choice choice;
  // By layer: the worst SQNR of an output, in dB, if this layer alone is quantized. Infinite for layers that were not
  // allowed.
  std::vector<double> alone;
};

// allowed: the layers that may be quantized. sqnr: what every output must reach on the samples, in dB. progress: is
// told what is done, and how much of it, 0 to 1.
absl::StatusOr<LayerChoice> ChooseLayers(const ModelFile& model, const Layers& layers,
                                         const std::vector<ValueRange>& ranges, const Choice& allowed,
                                         const Samples& samples, double sqnr, const CompileOptions& options,
                                         const std::function<void(std::string_view what, double share)>& progress);

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_CHOOSE_LAYERS_H_
