// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_report.h"

#include <algorithm>
#include <set>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {

std::string_view NameOf(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kOperator:
      return "operator";
    case ProblemKind::kControlFlow:
      return "control_flow";
    case ProblemKind::kUnknownValue:
      return "unknown_value";
    case ProblemKind::kOpenShape:
      return "open_shape";
    case ProblemKind::kOpset:
      return "opset";
    case ProblemKind::kInvalid:
      return "invalid";
    case ProblemKind::kUnsupported:
      return "unsupported";
  }
  return "";
}

std::string_view AdviceOnOperator(std::string_view domain, std::string_view op) {
  if (domain.empty() && op == "ImageDecoder") return "decode images before the model, and make their pixels its input";
  if (domain == "ai.onnx.preview.training" && op == "Gradient") return "remove it, and export the model for inference";
  return "";
}

std::string_view AdviceOn(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kOperator:
      return "define the operator in a file that --operators names, or replace it by others before the export, or "
             "export "
             "without the optimizations of another runtime";
    case ProblemKind::kControlFlow:
      return "fix the condition with --bind if it is an input, or export the model without loops and branches";
    case ProblemKind::kUnknownValue:
      return "fix the value of the input that decides it with --bind NAME=VALUES or --bind NAME=FILE.npy";
    case ProblemKind::kOpenShape:
      return "give the shape with --shape NAME=1,3,224,224";
    case ProblemKind::kOpset:
      return "export the model with a supported opset; Hone converts between the supported ones itself";
    case ProblemKind::kInvalid:
      return "correct the file or its exporter; other runtimes refuse it, too";
    case ProblemKind::kUnsupported:
      return "change the model before the export so that it does not need this";
  }
  return "";
}

bool MayFallBack(const ImportProblem& problem) {
  switch (problem.kind) {
    case ProblemKind::kOperator:
      return problem.place >= 0 && AdviceOnOperator(problem.domain, problem.op).empty();
    case ProblemKind::kControlFlow:
    case ProblemKind::kUnknownValue:
    case ProblemKind::kUnsupported:
      return problem.place >= 0;
    case ProblemKind::kOpenShape:
    case ProblemKind::kOpset:
    case ProblemKind::kInvalid:
      return false;
  }
  return false;
}

std::string Print(const ForeignNodes& nodes) {
  constexpr size_t kNamesMax = 5;
  const std::vector<std::string> shown(nodes.nodes.begin(),
                                       nodes.nodes.begin() + std::min(nodes.nodes.size(), kNamesMax));
  std::string text = fmt::format("{} node{} left to ONNX Runtime: {}", nodes.nodes.size(),
                                 nodes.nodes.size() == 1 ? "" : "s", fmt::join(shown, ", "));
  if (nodes.nodes.size() > kNamesMax) text += fmt::format(" and {} more", nodes.nodes.size() - kNamesMax);
  std::set<std::string> refused;
  for (const ImportProblem& reason : nodes.reasons) refused.insert(reason.node);
  if (!nodes.reasons.empty()) text += fmt::format("; {}", nodes.reasons.front().text);
  if (refused.size() > 1) text += fmt::format("; and {} more", refused.size() - 1);
  return text;
}

absl::Status RefusalOf(const std::vector<ImportProblem>& problems, bool offers_fallback) {
  constexpr size_t kReasonsMax = 20;
  constexpr std::string_view kOffer =
      "--fallback onnxruntime lets ONNX Runtime compute such nodes where it is installed";
  const bool offers = offers_fallback && std::ranges::any_of(problems, MayFallBack);
  if (problems.size() == 1) {
    const ImportProblem& only = problems.front();
    return absl::Status(only.code, offers ? fmt::format("{}; {}", only.text, kOffer) : only.text);
  }
  std::string text = fmt::format("{} problems:", problems.size());
  for (size_t i = 0; i < std::min(problems.size(), kReasonsMax); ++i) text += "\n  " + problems[i].text;
  if (problems.size() > kReasonsMax) {
    text += fmt::format("\n  and {} more; hone check lists all", problems.size() - kReasonsMax);
  }
  if (offers) text += fmt::format("\n  {}", kOffer);
  return absl::Status(problems.front().code, text);
}

}  // namespace hone::graph
