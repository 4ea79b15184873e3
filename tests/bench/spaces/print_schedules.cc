// SPDX-License-Identifier: Apache-2.0
// hone-print-schedules MODEL.onnx... --target TARGET... prints the decisions and schedules that every space makes for
// every workload: the preferred one, one for a random tile hint, and some with random decisions.
//
// Two builds of Hone that print the same text have the same spaces. Compare them before and after a change that must
// not affect schedules.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "compiler/graph/passes/pipeline.h"
#include "compiler/graph/plan.h"
#include "compiler/ir/text.h"
#include "compiler/space/space.h"
#include "tests/fuzz/random_graph.h"
#include "tests/unit/space/workloads.h"

namespace hone::space {
namespace {

struct Options {
  std::vector<std::string> models, targets;
  bool small = false;   // adds the workloads of the unit tests
  uint64_t graphs = 0;  // adds this many random graphs
  uint64_t draws = 3;   // random decisions for each space
  uint64_t seed = 1;
};

using Workloads = std::map<std::string, ir::Workload>;  // by digest

void AddWorkloads(const absl::StatusOr<graph::Plan>& plan, const std::string& name, Workloads* workloads) {
  if (!plan.ok()) {
    std::cout << fmt::format("{}: {}\n", name, plan.status().ToString());
    return;
  }
  for (const ir::Workload& workload : plan->workloads) workloads->emplace(ir::WorkloadDigest(workload), workload);
}

absl::StatusOr<graph::Plan> PlanOfRandomGraph(uint64_t seed) {
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, fuzz::MakeRandomGraph(seed));
  HONE_RETURN_IF_ERROR(graph::RunPasses(graph));
  return graph::BuildPlan(graph);
}

Workloads FindWorkloads(const Options& options, const target::Target& target) {
  Workloads workloads;
  for (const std::string& model : options.models) {
    AddWorkloads(graph::BuildPlan(model, {}, target), model, &workloads);
  }
  for (uint64_t i = 0; i < options.graphs; ++i) {
    AddWorkloads(PlanOfRandomGraph(options.seed + i), fmt::format("random graph {}", options.seed + i), &workloads);
  }
  if (!options.small) return workloads;
  for (const tests::NamedWorkload& small : tests::SmallWorkloads()) {
    const absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(small.text);
    if (workload.ok()) workloads.emplace(ir::WorkloadDigest(*workload), *workload);
  }
  return workloads;
}

// Returns a random tile for one of the workload's reductions; empty if it has none.
TileHint RandomHint(const ir::Workload& workload, Random& random) {
  std::vector<TileHint> hints;
  for (const ir::Stage& stage : workload.stages) {
    if (stage.reduction == ir::Reduction::kNone || stage.axes.empty()) continue;
    TileHint& hint = hints.emplace_back();
    for (const ir::Axis& axis : stage.axes) {
      hint.extents.push_back(axis.extent.max());
      hint.tile.push_back(1 + random.Below(std::min<int64_t>(axis.extent.max(), 64)));
    }
  }
  return hints.empty() ? TileHint() : hints[static_cast<size_t>(random.Below(static_cast<int64_t>(hints.size())))];
}

std::string Describe(const absl::StatusOr<Candidate>& candidate) {
  if (!candidate.ok()) return fmt::format("{}\n", candidate.status().ToString());
  std::string text;
  for (const Decision& d : candidate->decisions) {
    text += fmt::format("{}={} of {}\n", d.name, d.value, fmt::join(d.options, " "));
  }
  return text + schedule::Print(candidate->schedule);
}

void PrintSchedules(const ir::Workload& workload, const target::Target& target, const Options& options) {
  const std::string digest = ir::WorkloadDigest(workload);
  const std::vector<const Entry*> fitting = ApplicableEntries(workload, target);
  for (const Entry* entry : fitting) {
    const Decisions given = {{std::string(kSpaceDecision), entry->id, {}}};
    const auto print = [&](std::string_view kind, Chooser chooser) {
      const absl::StatusOr<Candidate> candidate = Build(workload, target, fitting, chooser);
      std::cout << fmt::format("== {} {} {} {}\n{}", digest, workload.op, entry->name, kind, Describe(candidate));
    };
    print("preferred", Chooser(&given));
    for (uint64_t i = 0; i < options.draws; ++i) {
      Random random = Random::Nth(options.seed, i);
      const TileHint hint = RandomHint(workload, random);
      print(fmt::format("hint {}", Print(hint)), Chooser(&given, nullptr, &hint));
      print(fmt::format("draw {}", i), Chooser(&given, &random));
    }
  }
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Prints decisions and schedules of every space for every workload of the models.",
               "hone-print-schedules");
  app.add_option("MODEL", options.models, "ONNX files")->check(CLI::ExistingFile);
  app.add_option("--target", options.targets, "a target; may be given several times")
      ->required()
      ->allow_extra_args(false);
  app.add_flag("--small", options.small, "the workloads of the unit tests, too");
  app.add_option("--graphs", options.graphs, "so many random graphs, too");
  app.add_option("--random", options.draws, "schedules by chance for each space and workload")->capture_default_str();
  app.add_option("--seed", options.seed, "seed of all that is random")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::err);
  for (const std::string& text : options.targets) {
    const absl::StatusOr<target::Target> target = target::ParseTarget(text);
    if (!target.ok()) {
      std::cerr << fmt::format("hone-print-schedules: {}\n", target.status().ToString());
      return 1;
    }
    std::cout << fmt::format("==== {}\n", text);
    for (const auto& [digest, workload] : FindWorkloads(options, *target)) PrintSchedules(workload, *target, options);
  }
  return 0;
}

}  // namespace
}  // namespace hone::space

int main(int argc, char** argv) { return hone::space::Main(argc, argv); }
