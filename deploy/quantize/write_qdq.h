// SPDX-License-Identifier: Apache-2.0
// Writes QuantizeLinear and DequantizeLinear around the chosen layers of a model: the form that ONNX calls QDQ.
//
// Values are u8 with a zero point, weights i8 without one, biases i32 with the product of both scales. Start with
// WriteQdq.
#ifndef HONE_DEPLOY_QUANTIZE_WRITE_QDQ_H_
#define HONE_DEPLOY_QUANTIZE_WRITE_QDQ_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/quantize/layers.h"
#include "deploy/quantize/model_file.h"
#include "deploy/quantize/value_range.h"

namespace hone::quantize {

// Changes `model`, from which `layers` were found. ranges: by LayerValue::range. Errors are those of
// ModelFile::ReadFloats.
absl::Status WriteQdq(ModelFile& model, const Layers& layers, const Choice& choice,
                      const std::vector<ValueRange>& ranges);

// A model in f32 whose layers are quantized in a run or not: instead of QuantizeLinear and DequantizeLinear alone, each
// value and each constant has a choice between them and what it was. The names are those of new inputs, bool [1]: true
// chooses the quantized one.
struct Switches {
  std::vector<std::string> values;   // by index in Layers::values
  std::vector<std::string> weights;  // by index in Layers::layers; "" for a layer without constant weights
};
absl::StatusOr<Switches> WriteSwitches(ModelFile& model, const Layers& layers, const std::vector<ValueRange>& ranges);

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_WRITE_QDQ_H_
