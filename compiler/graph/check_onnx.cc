// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/check_onnx.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/graph/bind_inputs.h"
#include "compiler/graph/default_ranges.h"
#include "compiler/graph/fallback.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {
namespace {

constexpr int64_t kReadBytesMax = 1 << 16;  // enough for shapes and scales; the import reads more where it must

// The model, with the parts that ONNX Runtime is to compute in place of their nodes.
struct SplitModel {
  RawModel model;
  std::vector<ForeignNodes> fallbacks;
};

absl::StatusOr<SplitModel> ReadWithoutWeights(const std::string& path, const ImportOptions& options) {
  SplitModel read;
  HONE_ASSIGN_OR_RETURN(read.model, ReadOnnxFile(path, {options.may_read, kReadBytesMax, options.fallback}));
  if (!options.fallback) return read;
  ImportOptions numbers = options;  // which nodes are refused does not depend on the sizes
  for (const auto& [name, range] : AssumedNumbers(read.model, options)) numbers.ranges.emplace(name, range);
  read.fallbacks = MoveRefused(read.model, numbers);
  return read;
}

TryImport TryOf(const RawModel& model) {
  return [&model](const ImportOptions& options) { return TryImportOnnx(model, options); };
}

// Notes the range of each open dimension.
void NoteRanges(const std::vector<RawInput>& inputs, const DimRanges& ranges, ImportReport& report) {
  for (OpenDimension& open : report.open_dimensions) {
    const auto input = std::ranges::find(inputs, open.input, &RawInput::name);
    if (input == inputs.end() || !input->shape) continue;
    const std::string name = SizeName(*input, open.index);
    if (const auto range = ranges.find(name); range != ranges.end()) {
      open.range = Print(range->second);
    } else if (const std::optional<ir::Size> sum = SumOf(name, ranges)) {
      open.range = Print(DimRange(sum->min(), sum->max()));
    }
  }
}

}  // namespace

absl::StatusOr<ImportReport> CheckOnnx(const std::string& path, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const SplitModel read, ReadWithoutWeights(path, options));
  const RawModel& model = read.model;
  ImportReport report = TryImportOnnx(model, options).report;
  report.fallbacks = read.fallbacks;
  if (report.open_dimensions.empty()) return report;
  std::erase_if(report.problems, [](const ImportProblem& p) { return p.kind == ProblemKind::kOpenShape; });
  ImportOptions assumed = options;
  bool guesses = false;
  for (const RawInput& input : model.graph.inputs) {
    const bool is_tensor = input.container == RawInput::Container::kNone;
    if (input.shape || !is_tensor || options.shapes.contains(input.name)) continue;
    assumed.shapes[input.name] = {};
    report.assumed_shapes.push_back(input.name + "=");
    guesses = true;
  }
  absl::StatusOr<DimRanges> ranges = ChooseRanges(model, assumed, TryOf(model));
  if (!ranges.ok()) {
    report.problems.push_back({.kind = ProblemKind::kOpenShape,
                               .code = ranges.status().code(),
                               .node = {},
                               .op = {},
                               .domain = {},
                               .text = std::string(ranges.status().message())});
    ranges = AssumedNumbers(model, assumed);
    guesses = true;
  }
  assumed.ranges = *std::move(ranges);
  for (std::string& text : ShapeTexts(model, options, assumed.ranges)) report.assumed_shapes.push_back(std::move(text));
  NoteRanges(model.graph.inputs, assumed.ranges, report);
  const ImportReport again = TryImportOnnx(model, assumed).report;
  std::set<std::string> known;
  for (const ImportProblem& problem : report.problems) known.insert(problem.text);
  for (const ImportProblem& problem : again.problems) {
    const bool any_size = problem.kind != ProblemKind::kInvalid && problem.kind != ProblemKind::kOpenShape;
    if ((any_size || !guesses) && !known.contains(problem.text)) report.problems.push_back(problem);
  }
  report.nodes = again.nodes;
  report.loops_of_assumed_steps = again.loops_of_assumed_steps;
  return report;
}

absl::StatusOr<OpenRanges> ChooseOpenRanges(const std::string& path, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const SplitModel read, ReadWithoutWeights(path, options));
  const RawModel& model = read.model;
  absl::StatusOr<DimRanges> ranges = ChooseRanges(model, options, TryOf(model));
  if (!ranges.ok()) return Annotate(ranges.status(), path);
  OpenRanges result;
  result.ranges = *std::move(ranges);
  result.shapes = ShapeTexts(model, options, result.ranges);
  result.numbers = ShapeTexts(model, options, ExampleNumbers(model, result.ranges));
  return result;
}

absl::StatusOr<std::vector<std::string>> InputNames(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const SplitModel read, ReadWithoutWeights(path, {}));
  std::vector<std::string> names;
  for (const RawInput& input : read.model.graph.inputs) names.push_back(input.name);
  return names;
}

absl::StatusOr<std::map<std::string, std::string>> ExternalFiles(const std::string& path) {
  std::map<std::string, std::string> files;
  HONE_RETURN_IF_ERROR(ReadOnnxFile(path, {.external_bytes_max = kReadBytesMax, .external_files = &files}).status());
  return files;
}

}  // namespace hone::graph
