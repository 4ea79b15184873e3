// SPDX-License-Identifier: Apache-2.0
#include "compiler/opt/opt.h"

#include <algorithm>
#include <utility>

#include "compiler/graph/text.h"
#include "compiler/opt/random_run.h"
#include "compiler/passes/split_launches.h"
#include "compiler/schedule/apply.h"
#include "fmt/format.h"

namespace hone::opt {
namespace {

constexpr std::string_view kHead = "# run: passes=";
// Rounding tolerance: passes over graphs, and schedules, may reorder sums; passes over a func may not.
constexpr double kReordered = 1e-4;

// Removes the first line from text and returns it.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Splits the text into parts: a part begins at each line for which `opens` holds. Every part is preceded by as many
// empty lines as the lines before it, so that errors have the right line numbers.
std::vector<std::string> SplitText(std::string_view text, const std::function<bool(std::string_view line)>& opens) {
  std::vector<std::string> parts(1);
  for (size_t number = 0; !text.empty(); ++number) {
    const std::string_view line = TakeLine(text);
    if (opens(line)) parts.emplace_back(number, '\n');
    parts.back().append(line).append("\n");
  }
  return parts;
}

struct Input {
  std::string passes;  // from the head of the text
  std::string kind;    // the first word
  std::string text;
};

Input ReadInput(std::string_view whole) {
  Input input;
  input.text = SplitText(whole, [](std::string_view line) { return line == "----"; })[0];
  for (std::string_view rest = input.text; !rest.empty() && input.kind.empty();) {
    const std::string_view line = TakeLine(rest);
    if (line.starts_with(kHead)) input.passes = line.substr(kHead.size());
    if (line.starts_with('#')) continue;
    const size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    input.kind = line.substr(begin, line.find_first_of(" \t", begin) - begin);
  }
  return input;
}

std::string Text(const ir::Func& func, const OptOptions&) { return ir::Print(func); }
std::string Text(const graph::Graph& graph, const OptOptions& options) {
  return options.all_constants ? graph::Print(graph) : graph::PrintBrief(graph);
}

template <typename Program>
void ReportPass(const PassRun& run, const Program& program, const OptOptions& options) {
  if (!options.say) return;
  if (options.time_passes) options.say(fmt::format("# {}: {:.3f} ms\n", run.pass, run.took.count()));
  if (options.show == Show::kResult) return;
  const bool show = options.show == Show::kAll || run.changed.value_or(true);
  options.say(fmt::format("# after {}{}\n{}", run.pass, run.changed.value_or(true) ? "" : " (unchanged)",
                          show ? Text(program, options) : std::string()));
}

// Between bind and barriers the lanes of a func may race, so its results are not defined yet.
bool HasDefinedResults(const ir::Func& func, std::span<const Pass<ir::Func>> to_come) {
  return !func.grid.defined() ||
         std::none_of(to_come.begin(), to_come.end(), [](const auto& pass) { return pass.name == "barriers"; });
}
bool HasDefinedResults(const graph::Graph&, std::span<const Pass<graph::Graph>>) { return true; }

// Runs the passes with the given options. With `interpret`, `meaning` computes the program's results, which no pass may
// change by more than the tolerance.
template <typename Program>
absl::Status Run(std::span<const Pass<Program>> passes, Program& program, const OptOptions& options, double tolerance,
                 const std::function<absl::StatusOr<Tensors>(const Program&)>& meaning) {
  Tensors expected;
  if (options.interpret) {
    absl::StatusOr<Tensors> before = meaning(program);
    if (!before.ok()) return Annotate(before.status(), "the interpreter, before the first pass");
    expected = *std::move(before);
  }
  PassOptions<Program> run_options;
  run_options.verify |= options.verify_each;
  run_options.compare = options.show != Show::kResult;
  run_options.producer = "parsing";
  run_options.reproducer = {
      .folder = options.reproducers,
      .flags = options.interpret ? fmt::format("--verify-each --interpret --seed={}", options.seed) : "--verify-each"};
  if (target::Print(options.target) != target::Print({})) {
    run_options.reproducer.flags += fmt::format(" --target='{}'", target::Print(options.target));
  }
  size_t done = 0;
  run_options.after = [&](const PassRun& run, const Program& now) -> absl::Status {
    ReportPass(run, now, options);
    ++done;
    if (!options.interpret || !HasDefinedResults(now, passes.subspan(done))) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const Tensors actual, meaning(now));
    return ExpectSame(expected, actual, tolerance);
  };
  return RunPasses(passes, program, run_options);
}

// A list entry like a pass that splits one func into several; the passes after it run on each.
constexpr Pass<ir::Func> kSplitLaunches = {"split_launches", nullptr};

struct FuncList {
  std::vector<Pass<ir::Func>> passes;
  bool splits = false;
  std::vector<Pass<ir::Func>> after_split;
};

absl::StatusOr<FuncList> SelectFuncPasses(std::string_view names, const PassTables& tables) {
  std::vector<Pass<ir::Func>> others(tables.grid.begin(), tables.grid.end());
  others.push_back(kSplitLaunches);
  FuncList list;
  HONE_ASSIGN_OR_RETURN(list.passes, SelectPasses(tables.func, names, std::span<const Pass<ir::Func>>(others)));
  const auto is_split = [](const Pass<ir::Func>& pass) { return pass.name == kSplitLaunches.name; };
  const auto split = std::ranges::find_if(list.passes, is_split);
  if (split == list.passes.end()) return list;
  list.splits = true;
  list.after_split.assign(split + 1, list.passes.end());
  list.passes.erase(split, list.passes.end());
  if (std::ranges::any_of(list.after_split, is_split)) {
    return absl::InvalidArgumentError("split_launches is listed twice in the passes");
  }
  return list;
}

// Returns the text of the func after the passes.
absl::StatusOr<std::string> RunList(const FuncList& list, ir::Func func, const OptOptions& options,
                                    const std::vector<ir::Param>& ranges = {}) {
  const auto meaning = [&](const ir::Func& f) { return RunOnRandomInputs(f, options.seed, ranges); };
  HONE_RETURN_IF_ERROR(Run<ir::Func>(list.passes, func, options, 0, meaning));
  if (!list.splits) return ir::Print(func);
  std::string result;
  for (ir::Func& launch : passes::SplitLaunches(func).funcs) {
    HONE_RETURN_IF_ERROR(CheckLegalAfter(kSplitLaunches.name, ir::Verify(launch)));
    HONE_RETURN_IF_ERROR(Run<ir::Func>(list.after_split, launch, options, 0, meaning));
    result += ir::Print(launch);
  }
  return result;
}

absl::StatusOr<std::string> OptFunc(const std::string& text, std::string_view names, const OptOptions& options,
                                    const PassTables& tables) {
  HONE_ASSIGN_OR_RETURN(const FuncList list, SelectFuncPasses(names, tables));
  HONE_ASSIGN_OR_RETURN(ir::Func func, ir::ParseFunc(text));
  HONE_RETURN_IF_ERROR(ir::Verify(func));
  return RunList(list, std::move(func), options);
}

absl::StatusOr<std::string> OptFuncs(const std::string& text, std::string_view list, const OptOptions& options,
                                     const PassTables& tables) {
  std::vector<std::string> parts = SplitText(text, [](std::string_view line) { return line.starts_with("func "); });
  if (parts.size() > 1) parts.erase(parts.begin());  // the text before the first part
  std::string result;
  for (const std::string& part : parts) {
    HONE_ASSIGN_OR_RETURN(const std::string printed, OptFunc(part, list, options, tables));
    result += printed;
  }
  return result;
}

absl::StatusOr<std::string> OptGraph(const std::string& text, std::string_view list, const OptOptions& options,
                                     const PassTables& tables) {
  HONE_ASSIGN_OR_RETURN(const auto passes, SelectPasses(tables.graph, list));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, graph::ParseGraph(text));
  graph.target = options.target;
  HONE_RETURN_IF_ERROR(graph::Verify(graph));
  HONE_RETURN_IF_ERROR(Run<graph::Graph>(passes, graph, options, kReordered,
                                         [&](const graph::Graph& g) { return RunOnRandomInputs(g, options.seed); }));
  return Text(graph, options);
}

// The passes of a workload's list after build_loops.
absl::StatusOr<FuncList> SelectAfterBuildLoops(std::string_view list, const PassTables& tables) {
  const std::vector<std::string_view> names = SplitNames(list);
  if (names[0] == "all") return SelectFuncPasses(list, tables);
  if (names[0] != "build_loops") {
    return absl::InvalidArgumentError(fmt::format(
        "the list of passes for a workload must begin with build_loops (or be all), not with {}", names[0]));
  }
  return SelectFuncPasses(list.substr(list.find("build_loops") + std::string_view("build_loops").size()), tables);
}

absl::StatusOr<std::string> OptWorkload(const std::string& text, std::string_view list, const OptOptions& options,
                                        const PassTables& tables) {
  std::vector<std::string> parts = SplitText(text, [](std::string_view line) { return line == "schedule"; });
  if (parts.size() > 2) return absl::InvalidArgumentError("the text has more than one line 'schedule'");
  if (parts.size() == 1) parts.emplace_back("schedule\n");
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(parts[0]));
  parts[1].replace(parts[1].find("schedule"), std::string_view("schedule").size(), "");
  HONE_ASSIGN_OR_RETURN(const schedule::Schedule schedule, schedule::ParseSchedule(parts[1]));
  HONE_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload, schedule));
  if (SplitNames(list).empty()) return ir::Print(workload) + "schedule\n" + schedule::Print(schedule);

  HONE_ASSIGN_OR_RETURN(const FuncList passes, SelectAfterBuildLoops(list, tables));
  HONE_ASSIGN_OR_RETURN(passes::Loops loops, passes::BuildLoops(state, options.target, "kernel"));
  HONE_RETURN_IF_ERROR(CheckLegalAfter("build_loops", ir::Verify(loops.main)));
  if (options.interpret) {
    HONE_ASSIGN_OR_RETURN(const Tensors expected, RunOnRandomInputs(workload, options.seed));
    HONE_ASSIGN_OR_RETURN(const Tensors actual, RunOnRandomInputs(workload, loops.prepare, loops.main, options.seed));
    HONE_RETURN_IF_ERROR(Annotate(ExpectSame(expected, actual, kReordered), "after build_loops"));
  }
  std::string result;
  for (ir::Func* func : {&loops.main, &loops.prepare}) {
    if (!func->body.defined()) continue;
    HONE_ASSIGN_OR_RETURN(const std::string printed, RunList(passes, *func, options, workload.params));
    result += printed;
  }
  return result;
}

}  // namespace

absl::StatusOr<std::string> Opt(std::string_view text, const OptOptions& options, const PassTables& tables) {
  const Input input = ReadInput(text);
  const std::string& list = options.passes.empty() ? input.passes : options.passes;
  if (input.kind == "func") return OptFuncs(input.text, list, options, tables);
  if (input.kind == "workload") return OptWorkload(input.text, list, options, tables);
  if (input.kind == "graph") return OptGraph(input.text, list, options, tables);
  return absl::InvalidArgumentError(
      fmt::format("the text begins with '{}'; it must begin with func, workload or graph", input.kind));
}

}  // namespace hone::opt
