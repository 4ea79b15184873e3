// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "deploy/quantize/quantize_model.h"
#include "deploy/quantize/samples.h"
#include "deploy/runtime/hone.h"

namespace hone::cli {
namespace {

using nlohmann::ordered_json;
using quantize::LayerReport;
using quantize::OutputAccuracy;
using quantize::Precision;
using quantize::QuantizeReport;
using quantize::RangeMethod;

constexpr std::array<std::pair<std::string_view, RangeMethod>, 4> kMethods = {{{"mse", RangeMethod::kSquaredError},
                                                                               {"minmax", RangeMethod::kMinMax},
                                                                               {"percentile", RangeMethod::kPercentile},
                                                                               {"entropy", RangeMethod::kEntropy}}};
constexpr std::array<std::pair<std::string_view, Precision>, 4> kPrecisions = {
    {{"int8", Precision::kInt8},
     {"dynamic-int8", Precision::kDynamicInt8},
     {"weights-int8", Precision::kWeightsInt8},
     {"weights-int4", Precision::kWeightsInt4}}};

// The check of an option whose value is one of the words.
CLI::IsMember OneOf(const auto& words) {
  std::vector<std::string> names;
  for (const auto& [name, value] : words) names.emplace_back(name);
  return CLI::IsMember(std::move(names));
}
// The value of a word that passed the check.
auto ValueOf(const auto& words, std::string_view word) {
  for (const auto& [name, value] : words) {
    if (name == word) return value;
  }
  HONE_CHECK(false);
}

struct QuantizeCommandOptions {
  ModelOptions model;
  quantize::QuantizeOptions quantize;
  std::string output, to = "int8", method = "mse";
  double sqnr = 0;  // 0: no bound
  bool json = false;
};

// JSON has no infinity. Outputs without any difference, and those that cannot be compared, have null.
ordered_json DecibelsToJson(double decibels) {
  return std::isfinite(decibels) ? ordered_json(decibels) : ordered_json();
}
std::string DecibelsText(double decibels) {
  return std::isfinite(decibels) ? fmt::format("{:.1f} dB", decibels) : decibels > 0 ? "equal" : "not a number";
}

ordered_json LayerToJson(const LayerReport& layer, const std::string& precision) {
  ordered_json json = {{"name", layer.name},
                       {"operator", layer.op},
                       {"precision", layer.quantized ? precision : "f32"},
                       {"kept_by_user", layer.kept_by_user},
                       {"weight_bytes", layer.weight_bytes}};
  if (layer.alone.has_value()) json["sqnr_alone"] = DecibelsToJson(*layer.alone);
  return json;
}

ordered_json ReportToJson(const QuantizeReport& report, const QuantizeCommandOptions& options) {
  ordered_json layers = ordered_json::array(), outputs = ordered_json::array();
  for (const LayerReport& layer : report.layers) layers.push_back(LayerToJson(layer, options.to));
  for (const OutputAccuracy& output : report.accuracy) {
    outputs.push_back({{"name", output.name()},
                       {"same_shapes", output.same_shapes()},
                       {"equal", output.same_shapes() && output.Sqnr() > std::numeric_limits<double>::max()},
                       {"sqnr", output.same_shapes() ? DecibelsToJson(output.Sqnr()) : ordered_json()},
                       {"cosine", output.Cosine()},
                       {"largest_difference", output.LargestDifference()},
                       {"largest_element", output.LargestElement()}});
  }
  return {{"model", FileNameOf(options.model.models.front())},
          {"output", options.output},
          {"precision", options.to},
          {"calibration_samples", report.calibration_samples},
          {"evaluation_samples", report.evaluation_samples},
          {"per_channel", report.per_channel},
          {"bytes_before", report.bytes_before},
          {"bytes_after", report.bytes_after},
          {"accuracy", std::move(outputs)},
          {"layers", std::move(layers)}};
}

std::string ReportToText(const QuantizeReport& report, const QuantizeCommandOptions& options) {
  std::string text;
  size_t quantized = 0;
  const bool ranked = !report.layers.empty() && options.quantize.sqnr.has_value();
  for (const LayerReport& layer : report.layers) {
    quantized += layer.quantized ? 1 : 0;
    if (!ranked && layer.quantized) continue;
    const std::string why = layer.kept_by_user ? "by --keep" : layer.quantized ? "" : "for accuracy";
    text += Row("{:<5} {:>9}  {:<18} {}{}{}", layer.quantized ? "int8" : "f32",
                layer.alone.has_value() ? DecibelsText(*layer.alone) : "", layer.op, layer.name,
                why.empty() ? "" : "  ", why);
  }
  if (ranked) text = Row("{:<5} {:>9}  {:<18} {}", "", "alone", "operator", "layer") + text;
  const double reached = quantize::WorstSqnr(report.accuracy);
  if (ranked && reached < *options.quantize.sqnr) {
    text += Row("warning: {} is less than --sqnr: what is left in f32 is judged before sums are rounded as integers",
                DecibelsText(reached));
  }
  for (const OutputAccuracy& output : report.accuracy) {
    if (!output.same_shapes()) {
      text += Row("output '{}': not compared: its shape depends on values, and differs", output.name());
      continue;
    }
    if (output.Sqnr() > std::numeric_limits<double>::max()) {
      text += Row("output '{}': equal to f32", output.name());
      continue;
    }
    text += Row("output '{}': {} of signal to noise, cosine {:.6f}, largest difference {:.4g} of {:.4g}", output.name(),
                DecibelsText(output.Sqnr()), output.Cosine(), output.LargestDifference(), output.LargestElement());
  }
  const bool one_scale = options.quantize.precision == Precision::kInt8 && !report.per_channel;
  const std::string samples = report.evaluation_samples == 0 ? "accuracy on random inputs: give samples with --accuracy"
                                                             : fmt::format("{} samples", report.evaluation_samples);
  text += Row("{} of {} layers in {}{}; {}; {:.1f} MB became {:.1f} MB in {}", quantized, report.layers.size(),
              options.to, one_scale ? " (one scale for all channels: opset below 13)" : "", samples,
              static_cast<double>(report.bytes_before) / 1e6, static_cast<double>(report.bytes_after) / 1e6,
              options.output);
  return text;
}

absl::Status CheckOptions(const QuantizeCommandOptions& options) {
  const quantize::QuantizeOptions& quantize = options.quantize;
  const bool measures = quantize.precision == Precision::kInt8;
  if (measures && quantize.calibration.empty()) {
    return UsageError("--to int8 measures the ranges of values; give samples of the inputs with --calibrate");
  }
  if (!measures && (!quantize.calibration.empty() || options.sqnr > 0)) {
    return UsageError(
        fmt::format("--to {} measures no ranges: --calibrate and --sqnr are for --to int8; samples for "
                    "the accuracy are given with --accuracy",
                    options.to));
  }
  return absl::OkStatus();
}

// Checks that neither the output nor the file of its data, if it needs one, is an input.
absl::Status CheckNoInputIsLost(const QuantizeCommandOptions& options, const std::vector<std::string>& inputs) {
  HONE_RETURN_IF_ERROR(CheckNotAnInput(options.output, inputs));
  return CheckNotAnInput(options.output + ".data", inputs);
}

absl::Status Quantize(QuantizeCommandOptions& options) {
  quantize::QuantizeOptions& quantize = options.quantize;
  quantize.precision = ValueOf(kPrecisions, options.to);
  quantize.method = ValueOf(kMethods, options.method);
  HONE_RETURN_IF_ERROR(CheckOptions(options));
  const std::string& model = options.model.models.front();
  std::vector<std::string> inputs = options.model.Files();
  for (const std::string& samples : {quantize.calibration, quantize.evaluation}) {
    if (samples.empty()) continue;
    HONE_ASSIGN_OR_RETURN(const std::vector<std::string> files, quantize::SampleFiles(samples));
    inputs.insert(inputs.end(), files.begin(), files.end());
  }
  HONE_RETURN_IF_ERROR(CheckNoInputIsLost(options, inputs));
  HONE_RETURN_IF_ERROR(CheckCanCreate(options.output));
  HONE_ASSIGN_OR_RETURN(quantize.compile.import, options.model.Import());
  quantize.compile.import.may_read = [&](const std::string& file) { return CheckNoInputIsLost(options, {file}); };
  if (quantize.calibration.empty() && quantize.evaluation.empty()) {
    HONE_RETURN_IF_ERROR(AddDefaultRanges(model, quantize.compile.import));
  }
  quantize.compile.allows_onnx_runtime = !options.model.fallback.empty();
  if (options.sqnr > 0) quantize.sqnr = options.sqnr;
  ProgressLine line;
  quantize.progress = [&line](std::string_view what, double share) { line.Show(what, share); };
  absl::StatusOr<QuantizeReport> report = quantize::QuantizeModel(model, options.output, quantize);
  line.Finish();
  if (!report.ok()) return report.status();
  return options.json ? PrintJson(ReportToJson(*report, options)) : PrintText(ReportToText(*report, options));
}

}  // namespace

void AddQuantizeCommand(CLI::App& app, absl::Status* result) {
  auto options = std::make_shared<QuantizeCommandOptions>();
  CLI::App* command =
      app.add_subcommand("quantize", "write a model that computes with 8 bits, and measure its accuracy");
  options->model.AddMeaningTo(command);
  command->add_option("-o,--output", options->output, "where to write the quantized model, an ONNX file")
      ->required()
      ->check(NotEmpty)
      ->check(NotDash);
  command
      ->add_option(
          "--to", options->to,
          "int8 (values and weights), dynamic-int8 (each run measures its values), weights-int8 or weights-int4 "
          "(weights of products of matrices, in blocks of 32)")
      ->check(OneOf(kPrecisions))
      ->capture_default_str();
  command
      ->add_option(
          "--calibrate", options->quantize.calibration,
          "samples of the inputs by name, by which the ranges of values are measured: a .npz file, whose arrays "
          "may have several samples along the first dimension, or a folder of such files")
      ->check(NotEmpty);
  command
      ->add_option("--accuracy", options->quantize.evaluation,
                   "samples by which the accuracy is measured; without it those of --calibrate, or random inputs")
      ->check(NotEmpty);
  command
      ->add_option("--method", options->method,
                   "how the range of a value is chosen: mse (smallest squared error), minmax, percentile or entropy")
      ->check(OneOf(kMethods))
      ->capture_default_str();
  command
      ->add_option("--percentile", options->quantize.percentile,
                   "for --method percentile: of a hundred values, how many are inside of the range")
      ->check(CLI::Range(50.0, 100.0))
      ->capture_default_str();
  command->add_option("--keep", options->quantize.keep, "a node that stays in f32; may be given several times")
      ->check(NotEmpty);
  command
      ->add_option(
          "--sqnr", options->sqnr,
          "the ratio of signal to noise that every output must reach, in dB; the layers that cost most accuracy "
          "stay in f32")
      ->check(CLI::Range(1.0, 200.0));
  command
      ->add_option("--threads", options->quantize.compile.threads,
                   "threads that compute; 0: one per core of the fastest kind, or per CPU that control groups leave")
      ->check(IntegerInRange(HONE_MAX_THREADS));
  command->add_flag("--json", options->json, "print the report as JSON");
  command->callback([options, result] { *result = Quantize(*options); });
}

}  // namespace hone::cli
