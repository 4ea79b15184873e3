// SPDX-License-Identifier: Apache-2.0
#include "cli/model_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/one_line.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "deploy/diff/package_run.h"
#include "deploy/diff/reference_model.h"
#include "fmt/ranges.h"

namespace hone::cli {
namespace {

using diff::Comparison;
using diff::KernelCall;
using diff::ValueDifference;
using nlohmann::ordered_json;

constexpr int kBarWidth = 40;

std::string NamesOfNodes(const std::vector<run::ModelNode>& nodes) {
  std::vector<std::string> texts;
  for (const run::ModelNode& node : nodes) texts.push_back(fmt::format("{} ({})", node.name, node.op));
  return texts.empty() ? "no node that is known" : fmt::format("{}", fmt::join(texts, ", "));
}

ordered_json NodesToJson(const std::vector<run::ModelNode>& nodes) {
  ordered_json result = ordered_json::array();
  for (const run::ModelNode& node : nodes) result.push_back({{"name", node.name}, {"operator", node.op}});
  return result;
}

// JSON has no numbers that are not finite; they are texts.
ordered_json NumberToJson(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

std::string WorstText(const ValueDifference& value) {
  if (value.error.worst < 0) return "";
  return fmt::format("the worst element is {}: {:.9g} in the package, {:.9g} in the model",
                     diff::PositionOf(value.error.worst, value.shape), value.error.actual, value.error.expected);
}

std::string HistogramText(const Comparison& error) {
  const int64_t most = *std::ranges::max_element(error.histogram);
  std::string text;
  for (int i = 0; i < diff::kErrorClasses; ++i) {
    const int64_t count = error.histogram[static_cast<size_t>(i)];
    if (count == 0) continue;
    const auto width = static_cast<size_t>((count * kBarWidth + most - 1) / most);
    text += fmt::format("    {:>10} {:>12}  {}\n", diff::ErrorClassText(i), count, std::string(width, '#'));
  }
  return text;
}

std::string ToleranceText(const diff::Tolerance& tolerance) {
  if (tolerance.relative == 0 && tolerance.absolute == 0) return tolerance.steps > 0 ? "1" : "0";
  return fmt::format("{:.2g} of the element plus {:.2g} of the largest{}", tolerance.relative, tolerance.absolute,
                     tolerance.steps > 0 ? " plus 1" : "");
}

std::string FirstToText(const ValueDifference& value) {
  const Comparison& error = value.error;
  std::string text =
      OneLine(fmt::format("first difference: '{}', computed by {}", value.name, NamesOfNodes(value.nodes))) + "\n";
  for (size_t i = 0; i < value.kernels.size(); ++i) {
    const KernelCall& kernel = value.kernels[i];
    text += Row("  {} {}, call {}: {}", i == 0 ? "kernel" : "or kernel", kernel.symbol, kernel.call,
                NamesOfNodes(kernel.nodes));
  }
  if (!value.mismatch.empty()) return text + Row("  {}", value.mismatch);
  text +=
      Row("  {} of {} elements differ by more than {}", error.wrong, error.elements, ToleranceText(value.tolerance));
  text += Row("  the largest error is {:.4g}{}", error.max_error,
              error.largest > 0 ? fmt::format(", which is {:.4g} of the largest element", error.RelativeError()) : "");
  if (const std::string worst = WorstText(value); !worst.empty()) text += Row("  {}", worst);
  return text + "  elements by their errors, as shares of the largest element:\n" + HistogramText(error);
}

ordered_json ValueToJson(const ValueDifference& value) {
  const Comparison& error = value.error;
  ordered_json kernels = ordered_json::array();
  for (const KernelCall& kernel : value.kernels) {
    kernels.push_back({{"call", kernel.call}, {"symbol", kernel.symbol}, {"nodes", NodesToJson(kernel.nodes)}});
  }
  ordered_json histogram = ordered_json::object();
  for (int i = 0; i < diff::kErrorClasses; ++i) {
    histogram[diff::ErrorClassText(i)] = error.histogram[static_cast<size_t>(i)];
  }
  ordered_json worst;
  if (error.worst >= 0) {
    worst = {{"index", diff::PositionOf(error.worst, value.shape)},
             {"package", NumberToJson(error.actual)},
             {"model", NumberToJson(error.expected)}};
  }
  return {{"name", value.name},
          {"nodes", NodesToJson(value.nodes)},
          {"dtype", Name(value.dtype)},
          {"shape", value.shape},
          {"wrong", value.IsWrong()},
          {"mismatch", value.mismatch},
          {"elements", error.elements},
          {"wrong_elements", error.wrong},
          {"max_error", NumberToJson(error.max_error)},
          {"relative_error", NumberToJson(error.RelativeError())},
          {"total_error", NumberToJson(value.total_error)},
          {"worst", std::move(worst)},
          {"tolerance",
           {{"relative", value.tolerance.relative},
            {"absolute", value.tolerance.absolute},
            {"steps", value.tolerance.steps}}},
          {"histogram", std::move(histogram)},
          {"kernels", std::move(kernels)}};
}

}  // namespace

absl::StatusOr<ModelDiff> DiffRun(const ModelOptions& model, const std::string& package, run::KeptRun kept,
                                  const PlaceOfRun& place, bool interpret) {
  HONE_ASSIGN_OR_RETURN(diff::ProgramTables tables, diff::ProgramTables::Read(package, kept.program));
  const diff::PackageRun run{std::move(tables), std::move(kept)};
  if (!place.device.empty()) HONE_RETURN_IF_ERROR(Annotate(diff::CheckInputs(run, place.inputs), place.device));
  ProgressLine line;
  diff::ReferenceModel::Options options = {
      .import = {},
      .interpret = interpret,
      .allows_onnx_runtime = !model.fallback.empty(),
      .progress = [&line](size_t done, size_t all) {
        line.Show(fmt::format("compiling the unoptimized model: {} of {} kernels", done, all),
                  static_cast<double>(done) / static_cast<double>(all));
      }};
  HONE_ASSIGN_OR_RETURN(options.import, model.Import());
  for (const run::KeptPort& input : run.kept.inputs) {
    options.import.shapes[input.name] = {input.array.shape.begin(), input.array.shape.end()};
  }
  HONE_ASSIGN_OR_RETURN(diff::ReferenceModel reference, diff::ReferenceModel::Make(model.models.front(), options));
  line.Finish();
  ModelDiff result = {.model = FileNameOf(model.models.front()),
                      .package = FileNameOf(package),
                      .target = run.tables.target(),
                      .device = place.device,
                      .interpreted = interpret,
                      .difference = {}};
  HONE_ASSIGN_OR_RETURN(result.difference, diff::DiffModel(reference, run));
  return result;
}

std::string ValuesToText(const ModelDiff& diff) {
  std::string text = Row("{:>9} {:>9}  {:<32} {}", "error", "in total", "value", "node");
  for (const ValueDifference& value : diff.difference.values) {
    text += Row("{:>9.2g} {:>9.2g}{} {:<32} {}", value.error.RelativeError(), value.total_error,
                value.IsWrong() ? "!" : " ", value.name, NamesOfNodes(value.nodes));
  }
  return text;
}

std::string DiffToText(const ModelDiff& diff) {
  const diff::ModelDifference& difference = diff.difference;
  std::string text =
      Row("{}{} beside {}, unoptimized and {}: {} values compared, {} not; {} of {} kernel calls checked", diff.package,
          diff.device.empty() ? "" : " on " + diff.device, diff.model,
          diff.interpreted ? "interpreted" : "compiled as plain loops", difference.values.size(),
          difference.not_compared, difference.checked_calls, difference.calls);
  const ValueDifference* const first = difference.First();
  if (first != nullptr) return text + FirstToText(*first);
  const auto worst = std::ranges::max_element(difference.values, {},
                                              [](const ValueDifference& value) { return value.error.RelativeError(); });
  if (worst == difference.values.end()) return text;
  return text + Row("no difference; the largest error is {:.2g} of the largest element, of '{}'",
                    worst->error.RelativeError(), worst->name);
}

ordered_json DiffToJson(const ModelDiff& diff) {
  const diff::ModelDifference& difference = diff.difference;
  ordered_json values = ordered_json::array();
  for (const ValueDifference& value : difference.values) values.push_back(ValueToJson(value));
  const ValueDifference* const first = difference.First();
  return {{"model", diff.model},
          {"package", diff.package},
          {"target", diff.target},
          {"device", diff.device},
          {"interpreted", diff.interpreted},
          {"equal", first == nullptr},
          {"first", first == nullptr ? ordered_json() : ordered_json(first->name)},
          {"not_compared", difference.not_compared},
          {"calls", difference.calls},
          {"checked_calls", difference.checked_calls},
          {"values", std::move(values)}};
}

absl::Status CheckEqual(const ModelDiff& diff) {
  const ValueDifference* const first = diff.difference.First();
  if (first == nullptr) return absl::OkStatus();
  const std::string how = first->mismatch.empty()
                              ? fmt::format(", by {:.2g} of its largest element", first->error.RelativeError())
                              : ": " + first->mismatch;
  return DifferentError(fmt::format("{} differs from {}: first in '{}'{}", diff.package, diff.model, first->name, how));
}

}  // namespace hone::cli
