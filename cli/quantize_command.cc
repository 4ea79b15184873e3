// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
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
#include "deploy/runtime/hone.h"

namespace hone::cli {
namespace {

using nlohmann::ordered_json;
using quantize::LayerReport;
using quantize::OutputAccuracy;
using quantize::QuantizeReport;
using quantize::RangeMethod;

struct QuantizeCommandOptions {
  ModelOptions model;
  quantize::QuantizeOptions quantize;
  std::string output;
  double sqnr = 0;  // 0: no bound
  bool json = false;
};

// JSON has no infinity; an output without any difference has null.
ordered_json DecibelsToJson(double decibels) {
  return std::isfinite(decibels) ? ordered_json(decibels) : ordered_json();
}
std::string DecibelsText(double decibels) {
  return std::isfinite(decibels) ? fmt::format("{:.1f} dB", decibels) : decibels > 0 ? "equal" : "not a number";
}

ordered_json LayerToJson(const LayerReport& layer) {
  ordered_json json = {{"name", layer.name},
                       {"operator", layer.op},
                       {"precision", layer.quantized ? "int8" : "f32"},
                       {"kept_by_user", layer.kept_by_user},
                       {"weight_bytes", layer.weight_bytes}};
  if (layer.alone.has_value()) json["sqnr_alone"] = DecibelsToJson(*layer.alone);
  return json;
}

ordered_json ReportToJson(const QuantizeReport& report, const QuantizeCommandOptions& options) {
  ordered_json layers = ordered_json::array(), outputs = ordered_json::array();
  for (const LayerReport& layer : report.layers) layers.push_back(LayerToJson(layer));
  for (const OutputAccuracy& output : report.accuracy) {
    outputs.push_back({{"name", output.name()},
                       {"sqnr", DecibelsToJson(output.Sqnr())},
                       {"cosine", output.Cosine()},
                       {"largest_difference", output.LargestDifference()},
                       {"largest_element", output.LargestElement()}});
  }
  return {{"model", FileNameOf(options.model.models.front())},
          {"output", options.output},
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
  for (const OutputAccuracy& output : report.accuracy) {
    text += Row("output '{}': {} of signal to noise, cosine {:.6f}, largest difference {:.4g} of {:.4g}", output.name(),
                DecibelsText(output.Sqnr()), output.Cosine(), output.LargestDifference(), output.LargestElement());
  }
  text += Row("{} of {} layers compute with 8 bits{}; {} samples; {:.1f} MB became {:.1f} MB in {}", quantized,
              report.layers.size(), report.per_channel ? "" : " (one scale for all channels: opset below 13)",
              report.calibration_samples, static_cast<double>(report.bytes_before) / 1e6,
              static_cast<double>(report.bytes_after) / 1e6, options.output);
  return text;
}

absl::Status Quantize(QuantizeCommandOptions& options) {
  const std::string& model = options.model.models.front();
  quantize::QuantizeOptions& quantize = options.quantize;
  HONE_RETURN_IF_ERROR(CheckNotAnInput(options.output, {model, quantize.calibration, quantize.evaluation}));
  HONE_RETURN_IF_ERROR(CheckCanCreate(options.output));
  HONE_ASSIGN_OR_RETURN(quantize.compile.import, options.model.Import());
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
          "--calibrate", options->quantize.calibration,
          "samples of the inputs by name, by which the ranges of values are measured: a .npz file, whose arrays "
          "may have several samples along the first dimension, or a folder of such files")
      ->required()
      ->check(NotEmpty);
  command
      ->add_option("--accuracy", options->quantize.evaluation,
                   "samples by which the accuracy is measured; without it those of --calibrate")
      ->check(NotEmpty);
  const std::map<std::string, RangeMethod> methods = {{"mse", RangeMethod::kSquaredError},
                                                      {"minmax", RangeMethod::kMinMax},
                                                      {"percentile", RangeMethod::kPercentile},
                                                      {"entropy", RangeMethod::kEntropy}};
  command
      ->add_option("--method", options->quantize.method,
                   "how the range of a value is chosen: mse (smallest squared error), minmax, percentile or entropy")
      ->transform(CLI::CheckedTransformer(methods))
      ->default_str("mse");
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
