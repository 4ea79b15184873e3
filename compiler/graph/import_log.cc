// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_log.h"

#include <algorithm>
#include <set>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "compiler/graph/emit.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {
namespace {

constexpr char kReportedMark[] = "hone.graph/reported";

ProblemKind KindOf(const absl::Status& status) {
  if (status.message().find("--bind ") != std::string_view::npos) return ProblemKind::kUnknownValue;
  return absl::IsUnimplemented(status) ? ProblemKind::kUnsupported : ProblemKind::kInvalid;
}

// Returns true unless the declared rank or a declared extent contradicts the type. Some exporters write 0 for unknown.
bool MayHaveShape(const TensorType& type, const RawInput& declared) {
  if (!declared.shape) return true;
  if (declared.shape->size() != type.shape.size()) return false;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const std::optional<int64_t>& extent = (*declared.shape)[d].extent;
    if (extent && *extent != 0 && type.shape[d] != *extent) return false;
  }
  return true;
}

}  // namespace

absl::Status Reported() {
  absl::Status status = absl::CancelledError("the value is unknown because of a problem that is already reported");
  status.SetPayload(kReportedMark, absl::Cord());
  return status;
}

bool IsReported(const absl::Status& status) { return status.GetPayload(kReportedMark).has_value(); }

absl::Status AddContext(const absl::Status& status, std::string_view context) {
  return IsReported(status) ? status : Annotate(status, context);
}

void ImportLog::AddProblem(const absl::Status& status, std::optional<ProblemKind> kind) {
  if (status.ok() || IsReported(status)) return;
  report_.problems.push_back({.kind = kind.value_or(KindOf(status)),
                              .code = status.code(),
                              .node = {},
                              .op = {},
                              .domain = {},
                              .text = std::string(status.message())});
}

absl::Status ImportLog::AddNodeProblem(const absl::Status& status, const RawNode& node, size_t index, int64_t opset,
                                       const std::string& where, std::optional<ProblemKind> kind) {
  if (status.ok() || IsReported(status)) return status;
  report_.problems.push_back({.kind = kind.value_or(KindOf(status)),
                              .code = status.code(),
                              .node = NameOf(node, index),
                              .op = node.op,
                              .domain = node.domain,
                              .opset = opset,
                              .text = where + std::string(status.message()),
                              .place = place_});
  return Reported();
}

absl::Status ImportLog::AddInputProblem(const absl::Status& status, const RawInput& input, const DimRanges& symbols) {
  const size_t before = report_.open_dimensions.size();
  const bool may_be_open = absl::IsInvalidArgument(status);
  if (may_be_open && !input.shape) report_.open_dimensions.push_back({input.name, 0, "", ""});
  for (size_t d = 0; may_be_open && input.shape && d < input.shape->size(); ++d) {
    const RawDimension& dim = (*input.shape)[d];
    if (!dim.extent && !symbols.contains(SizeName(input, d)))
      report_.open_dimensions.push_back({input.name, d, dim.symbol, ""});
  }
  const bool open = report_.open_dimensions.size() > before;
  AddProblem(status, open ? std::optional(ProblemKind::kOpenShape) : std::nullopt);
  return status.ok() ? status : Reported();
}

void ImportLog::AddDataProblem(const RawInitializer& tensor) {
  const std::string text(tensor.later.unreadable.message());
  const std::string reason = text.substr(std::min(text.size(), text.find("': ")));  // without the tensor's name
  if (!text.empty() && data_problems_.insert(reason).second) AddProblem(tensor.later.unreadable);
}

void ImportLog::WarnOfNode(const std::string& node, const std::string& text) {
  auto& [first, count] = node_warnings_[text];
  if (count++ == 0) first = node;
}

void ImportLog::CompareDeclared(const RawInput& declared, const TensorType& type) {
  if (!declared.type_error.ok() || declared.small != nullptr) return;
  if (type.dtype != declared.dtype) {
    AddProblem(absl::InvalidArgumentError(
        fmt::format("value '{}' is {}, but the file declares it as {}; correct its declared type", declared.name,
                    Print(type), ir::Name(declared.dtype))));
  } else if (!MayHaveShape(type, declared)) {
    other_shapes_.push_back(fmt::format("'{}' is {}", declared.name, Print(type)));
  }
}

void ImportLog::WarnOfDefaults(const Graph& graph) {
  if (graph.defaults.empty()) return;
  const size_t more = graph.defaults.size() - 1;
  Warn(fmt::format(
      "input '{}'{} need not be set at run time, because the file has a default value; if it is a "
      "weight, --defaults-as-constants makes the model faster",
      graph.values[graph.defaults.begin()->first].name, more == 0 ? "" : fmt::format(" and {} more", more)));
}

ImportReport ImportLog::TakeReport() {
  for (const auto& [text, places] : node_warnings_) {
    const auto& [first, count] = places;
    const std::string more = count > 1 ? fmt::format(" (and in {} more nodes)", count - 1) : "";
    Warn(fmt::format("{}: {}{}", first, text, more));
  }
  if (!other_shapes_.empty()) {
    Warn(fmt::format("the shapes that the file declares for {} of its values are ignored, because they are wrong: {}",
                     other_shapes_.size(), other_shapes_.front()));
  }
  report_.loops_of_assumed_steps.assign(assumed_steps_.begin(), assumed_steps_.end());
  return std::move(report_);
}

}  // namespace hone::graph
