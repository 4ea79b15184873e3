// SPDX-License-Identifier: Apache-2.0
// Quantizes the constant operands of products alone, so that no samples are needed: in blocks that stay packed
// (MatMulNBits of com.microsoft), or per channel beside values that each run quantizes (DynamicQuantizeLinear).
//
// Not here: values with ranges that are measured (write_qdq.h). Start with WriteBlocks and WriteDynamic.
#ifndef HONE_DEPLOY_QUANTIZE_WRITE_WEIGHTS_H_
#define HONE_DEPLOY_QUANTIZE_WRITE_WEIGHTS_H_

#include "absl/status/status.h"
#include "deploy/quantize/layers.h"
#include "deploy/quantize/model_file.h"

namespace hone::quantize {

// The layers that these functions can change: products whose second operand is a constant matrix. Convolutions are not
// among them: they spend little on weights, and with values that are quantized in a run they would be slower than in
// f32.
Choice LayersWithWeights(const ModelFile& model, const Layers& layers);

// Makes a MatMulNBits of each chosen layer. Along the summed dimension, 32 elements share a scale. bits: 4 or 8.
absl::Status WriteBlocks(ModelFile& model, const Layers& layers, const Choice& choice, int bits);

// Makes a MatMulInteger of each chosen layer, whose first operand is quantized by its smallest and
// largest element in every run.
absl::Status WriteDynamic(ModelFile& model, const Layers& layers, const Choice& choice);

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_WRITE_WEIGHTS_H_
