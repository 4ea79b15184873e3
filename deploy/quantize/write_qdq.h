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

// Makes a model in which a run chooses the layers that are quantized. Returns the names of new inputs, a bool without
// dimensions for each layer: true chooses the quantized form of what the layer reads.
absl::StatusOr<std::vector<std::string>> WriteSwitches(ModelFile& model, const Layers& layers,
                                                       const std::vector<ValueRange>& ranges);

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_WRITE_QDQ_H_
