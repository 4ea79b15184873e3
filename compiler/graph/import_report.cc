// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/import_report.h"

#include <algorithm>

#include "fmt/format.h"

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

absl::Status RefusalOf(const std::vector<ImportProblem>& problems) {
  constexpr size_t kReasonsMax = 20;
  if (problems.size() == 1) return absl::Status(problems.front().code, problems.front().text);
  std::string text = fmt::format("{} problems:", problems.size());
  for (size_t i = 0; i < std::min(problems.size(), kReasonsMax); ++i) text += "\n  " + problems[i].text;
  if (problems.size() > kReasonsMax) {
    text += fmt::format("\n  and {} more; hone check lists all", problems.size() - kReasonsMax);
  }
  return absl::Status(problems.front().code, text);
}

}  // namespace hone::graph
