// SPDX-License-Identifier: Apache-2.0
// Writes a model that computes with 8 bits, and tells what that costs in accuracy.
//
// The ranges of values are measured: the model runs on samples, with the values as further outputs. Layers that would
// cost too much stay in f32. Start with QuantizeModel.
#ifndef HONE_DEPLOY_QUANTIZE_QUANTIZE_MODEL_H_
#define HONE_DEPLOY_QUANTIZE_QUANTIZE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/quantize/accuracy.h"
#include "deploy/quantize/compiled_model.h"
#include "deploy/quantize/value_range.h"

namespace hone::quantize {

// kInt8: values with measured ranges, weights for each channel (write_qdq.h). The others need no samples: kDynamicInt8
// measures values in each run, and with kWeightsInt8 and kWeightsInt4 they stay in f32 (write_weights.h).
enum class Precision : uint8_t { kInt8, kDynamicInt8, kWeightsInt8, kWeightsInt4 };

struct QuantizeOptions {
  Precision precision = Precision::kInt8;
  std::string calibration;  // .npz file or folder: the samples by which ranges are measured; only for kInt8
  // The samples by which accuracy is measured; empty: those of calibration, or, without any, random inputs.
  std::string evaluation;
  RangeMethod method = RangeMethod::kSquaredError;
  double percentile = 99.99;
  std::vector<std::string> keep;  // names of nodes that stay in f32
  std::optional<double> sqnr;     // in dB: layers stay in f32 until every output reaches it; only for kInt8
  CompileOptions compile;         // import.shapes of the samples are added, for inputs that have none there
  // Is told what is done, and how much of it, 0 to 1.
  std::function<void(std::string_view what, double share)> progress = [](std::string_view, double) {};
};

struct LayerReport {
  std::string name, op;
  bool quantized = false;
  bool kept_by_user = false;    // by QuantizeOptions::keep
  std::optional<double> alone;  // LayerChoice::alone, if layers were chosen
  int64_t weight_bytes = 0;     // of its constant operand in f32
};

struct QuantizeReport {
  size_t calibration_samples = 0, evaluation_samples = 0;  // 0: random inputs
  bool per_channel = false;
  std::vector<LayerReport> layers;
  Accuracy accuracy;                           // of the quantized model, against the one in f32
  uint64_t bytes_before = 0, bytes_after = 0;  // of the files; external data included
};

// Reads the model at `path` and writes the quantized one to `output`. Errors: those of ModelFile::Read,
// Samples::Open, FindLayers, CompiledModel and ModelFile::Write; InvalidArgument: `keep` names a node that is no layer;
// FailedPrecondition: the opset is below 10, or a value is not finite on a sample.
absl::StatusOr<QuantizeReport> QuantizeModel(const std::string& path, const std::string& output,
                                             const QuantizeOptions& options);

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_QUANTIZE_MODEL_H_
