// SPDX-License-Identifier: Apache-2.0
// `hone check`: what stands between a model and its compilation, all at once.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "compiler/graph/check_onnx.h"
#include "deploy/package/compile_kernels.h"
#include "fmt/ranges.h"

namespace hone::cli {
namespace {

constexpr size_t kShownMax = 5;  // names in one row of the text

struct CheckCommandOptions {
  ModelOptions model;
  bool json = false;
};

struct CheckResult {
  graph::ImportReport report;
  std::vector<std::string> target_problems;  // kernels that a target cannot compile
  bool fine() const { return report.problems.empty() && target_problems.empty(); }
};

// The problems of one kind with one operator: a row of the text and of the JSON summary.
struct ProblemGroup {
  std::vector<std::string> nodes;
  const graph::ImportProblem* first = nullptr;
};
using ProblemGroups = std::map<std::tuple<graph::ProblemKind, std::string, std::string, int64_t>, ProblemGroup>;

ProblemGroups GroupsOf(const std::vector<graph::ImportProblem>& problems) {
  ProblemGroups groups;
  for (const graph::ImportProblem& problem : problems) {
    ProblemGroup& group = groups[{problem.kind, problem.domain, problem.op, problem.opset}];
    if (group.first == nullptr) group.first = &problem;
    group.nodes.push_back(problem.node);
  }
  return groups;
}

const char* Plural(size_t count) { return count == 1 ? "" : "s"; }

std::string OperatorText(const graph::ImportProblem& problem) {
  if (problem.op.empty()) return "";
  return fmt::format("{}{} (opset {})", problem.domain.empty() ? "" : problem.domain + ".", problem.op, problem.opset);
}

std::string GroupText(const ProblemGroup& group) {
  const graph::ImportProblem& first = *group.first;
  std::string text = Row("  {:<14} {:>5}  {}", graph::NameOf(first.kind), group.nodes.size(), OperatorText(first));
  text += Row("      {}", first.text);
  if (group.nodes.size() > 1 && !first.node.empty()) {
    std::vector<std::string> shown(group.nodes.begin(), group.nodes.begin() + std::min(group.nodes.size(), kShownMax));
    text +=
        Row("      nodes: {}{}", fmt::join(shown, ", "),
            group.nodes.size() > shown.size() ? fmt::format(" and {} more", group.nodes.size() - shown.size()) : "");
  }
  return text;
}

// One row for each size that is open: its symbol, and the dimensions that share it.
std::string OpenText(const graph::ImportReport& report) {
  struct Size {
    std::string symbol, range;
    std::vector<std::string> dimensions;
  };
  std::vector<Size> sizes;  // in the order of the inputs
  for (const graph::OpenDimension& open : report.open_dimensions) {
    auto size = std::ranges::find(sizes, open.symbol, &Size::symbol);
    if (open.symbol.empty() || size == sizes.end()) {
      size = sizes.insert(sizes.end(), {open.symbol, open.range, {}});
    }
    size->dimensions.push_back(fmt::format("dimension {} of '{}'", open.index, open.input));
  }
  std::string text;
  for (const auto& [symbol, range, dimensions] : sizes) {
    text += Row("  {}{}: {}", symbol.empty() ? "without a name" : fmt::format("'{}'", symbol),
                range.empty() ? "" : fmt::format(" is {}", range),
                dimensions.size() <= kShownMax
                    ? fmt::format("{}", fmt::join(dimensions, ", "))
                    : fmt::format("{} and {} more", fmt::join(dimensions.begin(), dimensions.begin() + kShownMax, ", "),
                                  dimensions.size() - kShownMax));
  }
  if (!text.empty()) {
    text = fmt::format("{} dimension{} open:\n{}  without --shape, compile takes --shape {}\n",
                       report.open_dimensions.size(), report.open_dimensions.size() == 1 ? " is" : "s are", text,
                       fmt::join(report.assumed_shapes, " --shape "));
  }
  return text;
}

// What ONNX Runtime computes with --fallback, or could compute.
std::string FallbackText(const graph::ImportReport& report) {
  std::string text;
  for (const graph::ForeignNodes& part : report.fallbacks) text += Row("  {}", graph::Print(part));
  if (!text.empty()) return "parts that ONNX Runtime computes:\n" + text;
  const auto count = std::ranges::count_if(report.problems, graph::MayFallBack);
  if (count > 0) {
    text = Row("  {:<14} --fallback onnxruntime leaves the nodes of {} of these problems to ONNX Runtime", "fallback",
               count);
  }
  return text;
}

std::string LoopsText(const std::vector<std::string>& loops, int64_t steps) {
  if (loops.empty()) return "";
  const std::vector<std::string> shown(loops.begin(), loops.begin() + std::min(loops.size(), kShownMax));
  return Row("the model does not state the number of steps of {} loop{}: {}{}", loops.size(), Plural(loops.size()),
             fmt::join(shown, ", "), loops.size() > shown.size() ? " and more" : "") +
         Row("  there is memory for {} steps, and a run that needs more fails; --loop-steps changes it", steps);
}

std::string ReportText(const CheckResult& result, const std::string& model, int64_t loop_steps) {
  const graph::ImportReport& report = result.report;
  const size_t problems = report.problems.size() + result.target_problems.size();
  std::string text = Row("{}: {} nodes and constants, {} problem{}", model, report.nodes, problems, Plural(problems));
  std::set<graph::ProblemKind> kinds;
  for (const auto& [key, group] : GroupsOf(report.problems)) {
    text += GroupText(group);
    kinds.insert(group.first->kind);
  }
  for (const std::string& problem : result.target_problems) text += Row("  target: {}", problem);
  if (!kinds.empty()) text += "what helps:\n";
  for (const graph::ProblemKind kind : kinds) text += Row("  {:<14} {}", graph::NameOf(kind), graph::AdviceOn(kind));
  text += FallbackText(report);
  text += OpenText(report);
  text += LoopsText(report.loops_of_assumed_steps, loop_steps);
  for (const std::string& warning : report.warnings) text += Row("warning: {}", warning);
  if (result.fine()) text += "Hone can compile this model\n";
  return text;
}

nlohmann::ordered_json ReportJson(const CheckResult& result, const std::string& model) {
  using Json = nlohmann::ordered_json;
  const graph::ImportReport& report = result.report;
  Json problems = Json::array(), summary = Json::array(), open = Json::array(), fallbacks = Json::array();
  for (const graph::ImportProblem& problem : report.problems) {
    problems.push_back({{"kind", graph::NameOf(problem.kind)},
                        {"node", problem.node},
                        {"operator", problem.op},
                        {"domain", problem.domain},
                        {"opset", problem.opset},
                        {"text", problem.text},
                        {"advice", graph::AdviceOn(problem.kind)},
                        {"fallback", graph::MayFallBack(problem)}});
  }
  for (const graph::ForeignNodes& part : report.fallbacks) {
    Json reasons = Json::array();
    for (const graph::ImportProblem& reason : part.reasons) {
      reasons.push_back({{"node", reason.node}, {"operator", reason.op}, {"text", reason.text}});
    }
    fallbacks.push_back({{"nodes", part.nodes}, {"reasons", reasons}});
  }
  for (const auto& [key, group] : GroupsOf(report.problems)) {
    const graph::ImportProblem& first = *group.first;
    summary.push_back({{"kind", graph::NameOf(first.kind)},
                       {"operator", first.op},
                       {"domain", first.domain},
                       {"opset", first.opset},
                       {"count", group.nodes.size()}});
  }
  for (const graph::OpenDimension& dimension : report.open_dimensions) {
    open.push_back({{"input", dimension.input},
                    {"dimension", dimension.index},
                    {"symbol", dimension.symbol},
                    {"range", dimension.range}});
  }
  return {{"model", model},
          {"fine", result.fine()},
          {"nodes", report.nodes},
          {"problems", problems},
          {"summary", summary},
          {"fallbacks", fallbacks},
          {"target_problems", result.target_problems},
          {"open_dimensions", open},
          {"assumed_shapes", report.assumed_shapes},
          {"loops_of_assumed_steps", report.loops_of_assumed_steps},
          {"warnings", report.warnings}};
}

// The kernels that a target cannot compile. Reads the weights and generates code for every kernel without optimization.
absl::Status CheckTargets(const ModelOptions& model, graph::ImportOptions import, CheckResult& result) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::vector<target::Target>> lists, model.TargetLists());
  for (const std::string& shape : result.report.assumed_shapes) {
    ModelOptions assumed;
    assumed.shapes = {shape};
    HONE_ASSIGN_OR_RETURN(const graph::ImportOptions parsed, assumed.Import());
    import.shapes.insert(parsed.shapes.begin(), parsed.shapes.end());
  }
  for (const std::vector<target::Target>& units : lists) {
    HONE_ASSIGN_OR_RETURN(const graph::Plan plan, graph::BuildPlan(model.models.front(), import, units.front()));
    package::KernelOptions options = {.target = units.front(), .lookup = nullptr, .naive = true};
    for (size_t i = 1; i < units.size(); ++i) options.other_units.push_back({units[i], nullptr});
    for (const ir::Workload& workload : plan.workloads) {
      const absl::Status compiled = package::CompileKernels({&workload, 1}, options).status();
      if (!compiled.ok()) {
        result.target_problems.push_back(
            fmt::format("{}: {}", PrintTargetList(units), std::string(compiled.message())));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const CheckCommandOptions& options) {
  const std::string& model = options.model.models.front();
  HONE_ASSIGN_OR_RETURN(graph::ImportOptions import, options.model.Import());
  import.warn = nullptr;  // the result has the warnings
  CheckResult result;
  HONE_ASSIGN_OR_RETURN(result.report, graph::CheckOnnx(model, import));
  if (result.fine() && !options.model.targets.empty()) {
    HONE_RETURN_IF_ERROR(CheckTargets(options.model, import, result));
  }
  HONE_RETURN_IF_ERROR(options.json ? PrintJson(ReportJson(result, model))
                                    : PrintText(ReportText(result, model, options.model.loop_steps)));
  if (result.fine()) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format("{}: the model cannot be compiled as it is", model));
}

}  // namespace

void AddCheckCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<CheckCommandOptions>();
  CLI::App* command = app.add_subcommand("check",
                                         "list all that keeps a model from being compiled, without reading "
                                         "its weights; with --target, also what the target lacks");
  options->model.AddTo(command, ModelOptions::Count::kOne, ModelOptions::Count::kSeveral);
  command->add_flag("--json", options->json, "print one JSON document and nothing else");
  command->callback([options, result] { *result = Check(*options); });
}

}  // namespace hone::cli
