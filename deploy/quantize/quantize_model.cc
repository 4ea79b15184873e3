// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/quantize_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/graph/onnx_import.h"
#include "deploy/quantize/choose_layers.h"
#include "deploy/quantize/layers.h"
#include "deploy/quantize/model_file.h"
#include "deploy/quantize/samples.h"
#include "deploy/quantize/write_qdq.h"
#include "deploy/quantize/write_weights.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::quantize {
namespace {

constexpr int64_t kFirstOpset = 10;            // has QuantizeLinear
constexpr int64_t kFirstDynamicOpset = 11;     // has DynamicQuantizeLinear
constexpr int64_t kFirstPerChannelOpset = 13;  // DequantizeLinear has an axis

// The names of all values of f32.
absl::StatusOr<std::set<std::string>> FindFloats(const ModelFile& model, const graph::ImportOptions& import) {
  HONE_ASSIGN_OR_RETURN(const std::string path, model.WriteTemporary());
  const absl::StatusOr<graph::Graph> imported = graph::ImportOnnx(path, import);
  if (!imported.ok()) return model.NamedAsRead(imported.status());
  const graph::Graph& graph = *imported;
  std::set<std::string> floats;
  for (const graph::Value& value : graph.values) {
    if (value.type.dtype != DType::kFloat32) continue;
    floats.insert(value.name);
    for (const graph::FileValue& held : value.held) floats.insert(held.name);
  }
  return floats;
}

absl::Status AddValue(Histogram& histogram, const run::ArrayView& array) {
  const std::span<const float> floats(reinterpret_cast<const float*>(array.data.data()),
                                      array.data.size() / sizeof(float));
  const auto bad = std::ranges::find_if(floats, [](float x) { return !std::isfinite(x); });
  if (bad != floats.end()) {
    return absl::FailedPreconditionError(
        fmt::format("value '{}' of the model is {} on a sample; its range cannot be measured", array.name, *bad));
  }
  histogram.Add(floats);
  return absl::OkStatus();
}

// Runs the model on the samples, with the values of layers as outputs. One histogram for each range.
absl::StatusOr<std::vector<Histogram>> MeasureValues(const ModelFile& model, const Layers& layers,
                                                     const Samples& samples, const QuantizeOptions& options) {
  ModelFile watched = model;
  watched.graph().clear_output();
  std::map<std::string, int> ranges;  // by name of an output
  std::map<std::string, int> inputs;
  std::set<std::string> given;
  for (const onnx::ValueInfoProto& input : model.graph().input()) given.insert(input.name());
  for (const LayerValue& value : layers.values) {
    if (value.derived) continue;
    if (given.contains(value.name)) {
      inputs.emplace(value.name, value.range);
      continue;
    }
    ranges.emplace(value.name, value.range);
    onnx::ValueInfoProto& output = *watched.graph().add_output();
    output.set_name(value.name);
    output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  }
  std::vector<Histogram> histograms(static_cast<size_t>(layers.ranges));
  std::optional<CompiledModel> compiled;
  if (!ranges.empty()) {
    options.progress("compiling the model to measure its values", 0);
    HONE_ASSIGN_OR_RETURN(CompiledModel made, CompiledModel::Compile(watched, options.compile));
    compiled.emplace(std::move(made));
  }
  HONE_RETURN_IF_ERROR(samples.ForEach([&](size_t sample, std::span<const run::ArrayView> arrays) -> absl::Status {
    options.progress("measuring values", static_cast<double>(sample) / static_cast<double>(samples.size()));
    for (const run::ArrayView& array : arrays) {
      const auto input = inputs.find(array.name);
      if (input == inputs.end()) continue;
      HONE_RETURN_IF_ERROR(AddValue(histograms[static_cast<size_t>(input->second)], array));
    }
    if (!compiled.has_value()) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> outputs, compiled->Run(arrays));
    for (const run::ArrayView& output : outputs) {
      HONE_RETURN_IF_ERROR(AddValue(histograms[static_cast<size_t>(ranges.at(output.name))], output));
    }
    return absl::OkStatus();
  }));
  return histograms;
}

// All layers but those that the user keeps.
absl::StatusOr<Choice> AllowedLayers(const Layers& layers, const std::vector<std::string>& keep) {
  Choice allowed(layers.layers.size(), true);
  for (const std::string& name : keep) {
    bool found = false;
    for (size_t l = 0; l < allowed.size(); ++l) {
      if (layers.layers[l].name != name) continue;
      allowed[l] = false;
      found = true;
    }
    if (!found) {
      std::vector<std::string> names;
      for (const Layer& layer : layers.layers) names.push_back(layer.name);
      return absl::InvalidArgumentError(
          fmt::format("no node '{}' would be quantized; those that would are '{}'", name, fmt::join(names, "', '")));
    }
  }
  return allowed;
}

// The samples give the shapes of inputs for which the user gives none.
CompileOptions WithShapes(CompileOptions options, const std::vector<const Samples*>& all) {
  const auto shapes = OpenShapesOf(all);
  options.import.shapes.insert(shapes.begin(), shapes.end());
  return options;
}

// The inputs that samples must give.
std::vector<graph::RawInput> SampledInputs(const ModelFile& model, const graph::ImportOptions& import) {
  std::vector<graph::RawInput> inputs;
  std::set<std::string> defaults;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) defaults.insert(tensor.name());
  for (const graph::RawInput& input : model.inputs()) {
    const bool bound = import.bound_inputs.contains(input.name) || import.bound_texts.contains(input.name);
    if (!bound && !defaults.contains(input.name)) inputs.push_back(input);
  }
  return inputs;
}

// samples: null for random inputs.
absl::StatusOr<Accuracy> MeasureAccuracy(const std::string& before, const ModelFile& after, const Samples* samples,
                                         const QuantizeOptions& options) {
  options.progress("compiling both models to compare their outputs", 0);
  HONE_ASSIGN_OR_RETURN(CompiledModel expected, CompiledModel::CompileFile(before, options.compile));
  HONE_ASSIGN_OR_RETURN(CompiledModel actual, CompiledModel::Compile(after, options.compile));
  return samples != nullptr ? CompareModels(expected, actual, *samples) : CompareOnRandomInputs(expected, actual);
}

// One quantization of one model, step by step.
class Quantization {
 public:
  Quantization(std::string path, ModelFile model, QuantizeOptions options)
      : path_(std::move(path)), model_(std::move(model)), options_(std::move(options)) {}

  absl::Status ReadSamples() {
    const std::vector<graph::RawInput> inputs = SampledInputs(model_, options_.compile.import);
    std::vector<const Samples*> all;
    if (!options_.calibration.empty()) {
      HONE_ASSIGN_OR_RETURN(calibration_, Samples::Open(options_.calibration, inputs));
      report_.calibration_samples = calibration_->size();
      all.push_back(&*calibration_);
    }
    if (!options_.evaluation.empty()) {
      HONE_ASSIGN_OR_RETURN(evaluation_, Samples::Open(options_.evaluation, inputs));
      all.push_back(&*evaluation_);
    }
    report_.evaluation_samples = evaluation() == nullptr ? 0 : evaluation()->size();
    options_.compile = WithShapes(std::move(options_.compile), all);
    return absl::OkStatus();
  }

  absl::Status FindAllLayers() {
    report_.per_channel = model_.opset() >= kFirstPerChannelOpset;
    HONE_ASSIGN_OR_RETURN(std::set<std::string> floats, FindFloats(model_, options_.compile.import));
    // Inputs with a default or a bound value are in no sample, so their ranges cannot be measured.
    std::set<std::string> sampled;
    for (const graph::RawInput& input : SampledInputs(model_, options_.compile.import)) sampled.insert(input.name);
    for (const onnx::ValueInfoProto& input : model_.graph().input()) {
      if (!sampled.contains(input.name())) floats.erase(input.name());
    }
    absl::StatusOr<Layers> found = FindLayers(model_, floats, report_.per_channel);
    if (!found.ok()) return Annotate(found.status(), path_);
    layers_ = *std::move(found);
    absl::StatusOr<Choice> allowed = AllowedLayers(layers_, options_.keep);
    if (!allowed.ok()) return Annotate(allowed.status(), path_);
    allowed_ = *std::move(allowed);
    return absl::OkStatus();
  }

  // Quantizes values and weights, with the ranges that the samples show.
  absl::Status QuantizeAll(ModelFile& quantized) {
    HONE_ASSIGN_OR_RETURN(const std::vector<Histogram> histograms,
                          MeasureValues(model_, layers_, *calibration_, options_));
    std::vector<ValueRange> ranges;
    for (const Histogram& histogram : histograms) {
      ranges.push_back(ChooseRange(histogram, options_.method, options_.percentile));
    }
    LayerChoice chosen{allowed_, {}};
    if (options_.sqnr.has_value()) {
      HONE_ASSIGN_OR_RETURN(chosen, ChooseLayers(model_, layers_, ranges, allowed_, *evaluation(), *options_.sqnr,
                                                 options_.compile, options_.progress));
    }
    ReportLayers(chosen, Choice(layers_.layers.size(), true));
    return WriteQdq(quantized, layers_, chosen.choice, ranges);
  }

  // Quantizes weights; what is left to a run is in the nodes.
  absl::Status QuantizeWeights(ModelFile& quantized) {
    const bool dynamic = options_.precision == Precision::kDynamicInt8;
    const Choice possible = LayersWithWeights(model_, layers_);
    LayerChoice chosen{possible, {}};
    for (size_t l = 0; l < possible.size(); ++l) chosen.choice[l] = possible[l] && allowed_[l];
    ReportLayers(chosen, possible);
    if (report_.layers.empty()) {
      return absl::FailedPreconditionError(path_ +
                                           ": there is nothing to quantize: no MatMul or Gemm has constant weights");
    }
    if (dynamic) return WriteDynamic(quantized, layers_, chosen.choice);
    return WriteBlocks(quantized, layers_, chosen.choice, options_.precision == Precision::kWeightsInt4 ? 4 : 8);
  }

  absl::StatusOr<QuantizeReport> Write(ModelFile quantized, const std::string& output) {
    HONE_ASSIGN_OR_RETURN(report_.accuracy, MeasureAccuracy(path_, quantized, evaluation(), options_));
    report_.bytes_before = model_.bytes();
    HONE_ASSIGN_OR_RETURN(report_.bytes_after, quantized.Write(output));
    return std::move(report_);
  }

  const ModelFile& model() const { return model_; }

 private:
  const Samples* evaluation() const {
    return evaluation_.has_value() ? &*evaluation_ : calibration_.has_value() ? &*calibration_ : nullptr;
  }

  // possible: the layers that this precision is about.
  void ReportLayers(const LayerChoice& chosen, const Choice& possible) {
    for (size_t l = 0; l < layers_.layers.size(); ++l) {
      if (!possible[l]) continue;
      const Layer& layer = layers_.layers[l];
      LayerReport& line = report_.layers.emplace_back(LayerReport{.name = layer.name,
                                                                  .op = layer.op,
                                                                  .quantized = chosen.choice[l],
                                                                  .kept_by_user = !allowed_[l],
                                                                  .alone = {},
                                                                  .weight_bytes = layer.weight_bytes});
      if (!chosen.alone.empty() && allowed_[l]) line.alone = chosen.alone[l];
    }
  }

  const std::string path_;
  const ModelFile model_;
  QuantizeOptions options_;
  std::optional<Samples> calibration_, evaluation_;
  Layers layers_;
  Choice allowed_;
  QuantizeReport report_;
};

}  // namespace

absl::StatusOr<QuantizeReport> QuantizeModel(const std::string& path, const std::string& output,
                                             const QuantizeOptions& options) {
  HONE_ASSIGN_OR_RETURN(ModelFile model, ModelFile::Read(path, options.compile.import.defaults_are_constants,
                                                         options.compile.import.may_read));
  const bool dynamic = options.precision == Precision::kDynamicInt8;
  if (const int64_t first = dynamic ? kFirstDynamicOpset : kFirstOpset; model.opset() < first) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: its opset is {}, and the operators of this quantization exist since opset {}; export it again, or "
        "convert it with onnx.version_converter.convert_version(model, 13)",
        path, model.opset(), first));
  }
  Quantization quantization(path, std::move(model), options);
  HONE_RETURN_IF_ERROR(quantization.ReadSamples());
  HONE_RETURN_IF_ERROR(quantization.FindAllLayers());
  ModelFile quantized = quantization.model();
  HONE_RETURN_IF_ERROR(options.precision == Precision::kInt8 ? quantization.QuantizeAll(quantized)
                                                             : quantization.QuantizeWeights(quantized));
  return quantization.Write(std::move(quantized), output);
}

}  // namespace hone::quantize
