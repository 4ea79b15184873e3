// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/check_graph.h"

#include <algorithm>

#include "base/random.h"
#include "base/status.h"
#include "compiler/graph/passes/pipeline.h"
#include "compiler/graph/plan.h"
#include "compiler/ir/text.h"
#include "compiler/opt/random_run.h"
#include "compiler/passes/pipeline.h"
#include "compiler/space/space.h"
#include "fmt/format.h"
#include "tests/fuzz/random_graph.h"
#include "tests/fuzz/sizes.h"
#include "tests/unit/space/lowered.h"

namespace hone::fuzz {
namespace {

using tests::SizeMap;

// Relative to the largest magnitude in a tensor, or to 1 if that is larger. The numbers are about 1, and so are the
// errors of sums that cancel. Wrong elements nearly always differ by more.
constexpr tests::Tolerance kTolerance = {.relative = 1e-4, .least = 1};
constexpr tests::Tolerance kHalfTolerance = {.relative = 3e-2, .least = 1};  // a bf16 has 8 bits

bool IsHalf(ir::DType dtype) { return dtype == ir::DType::kFloat16 || dtype == ir::DType::kBFloat16; }

tests::Tolerance ToleranceOf(const graph::Graph& graph) {
  const bool half = std::ranges::any_of(graph.values, [](const graph::Value& v) { return IsHalf(v.type.dtype); });
  return half ? kHalfTolerance : kTolerance;
}

tests::Tolerance ToleranceOf(const ir::Workload& workload) {
  const bool half = std::ranges::any_of(workload.params, [](const ir::Param& p) { return IsHalf(p.buffer->dtype); }) ||
                    std::ranges::any_of(workload.stages, [](const ir::Stage& s) { return IsHalf(s.buffer->dtype); });
  return half ? kHalfTolerance : kTolerance;
}

absl::Status CheckSame(const opt::Tensors& expected, const opt::Tensors& actual, tests::Tolerance tolerance) {
  if (expected.size() != actual.size()) return absl::DataLossError("the passes changed how many outputs there are");
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto elements = static_cast<int64_t>(expected[i].bytes.size()) / ir::SizeOf(expected[i].dtype);
    if (expected[i].dtype != actual[i].dtype || expected[i].bytes.size() != actual[i].bytes.size()) {
      return absl::DataLossError(fmt::format("the passes changed the type of {}", expected[i].name));
    }
    const ir::Buffer buffer = ir::MakeBuffer(expected[i].name, expected[i].dtype, {elements});
    HONE_RETURN_IF_ERROR(tests::Compare(*buffer, expected[i].bytes, actual[i].bytes, tolerance));
  }
  return absl::OkStatus();
}

absl::Status CheckText(const graph::Graph& graph) {
  const std::string text = graph::Print(graph);
  HONE_ASSIGN_OR_RETURN(const graph::Graph read, graph::ParseGraph(text));
  HONE_RETURN_IF_ERROR(graph::Verify(read));
  if (graph::Print(read) != text) return absl::DataLossError("the text of the graph reads back as another graph");
  return absl::OkStatus();
}

// The results of a graph or plan at each of the sizes.
template <typename Program>
absl::StatusOr<std::vector<opt::Tensors>> RunAtSizes(const Program& program, const std::vector<SizeMap>& sizes,
                                                     uint64_t seed) {
  std::vector<opt::Tensors> results;
  for (const SizeMap& values : sizes) {
    auto outputs = opt::RunOnRandomInputs(AtSizes(program, values), seed);
    HONE_RETURN_IF_ERROR(tests::AtSizes(outputs.status(), values));
    results.push_back(*std::move(outputs));
  }
  return results;
}

absl::Status CheckSame(const std::vector<opt::Tensors>& expected, const std::vector<opt::Tensors>& actual,
                       const std::vector<SizeMap>& sizes, tests::Tolerance tolerance) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    HONE_RETURN_IF_ERROR(tests::AtSizes(CheckSame(expected[i], actual[i], tolerance), sizes[i]));
  }
  return absl::OkStatus();
}

// hone-opt runs a program only if it has no open sizes.
std::string_view InterpretFlag(bool open) { return open ? "" : "--interpret "; }

std::string TargetFlag(const Machine& machine) { return fmt::format("--target='{}'", target::Print(machine.target)); }

class WorkloadCheck {
 public:
  WorkloadCheck(const Machine& machine, const Watch& watch, Counts& counts, uint64_t seed)
      : machine_(machine), watch_(watch), counts_(counts), random_(seed) {}

  // Tries a random schedule of every space that applies, or sometimes the preferred one. sizes: where the kernels run.
  absl::Status Run(const ir::Workload& workload, const std::vector<SizeMap>& sizes) {
    ++counts_.workloads;
    counts_.open += workload.sizes.empty() ? 0 : 1;
    const std::vector<const space::Entry*> fitting = space::ApplicableEntries(workload, machine_.target);
    for (const space::Entry* entry : fitting) {
      const space::Decisions given = {{"space", entry->id, {}}};
      space::Chooser chooser(&given, random_.Below(4) == 0 ? nullptr : &random_);
      const std::string what = fmt::format("a schedule of the space {}", entry->name);
      watch_({what, "# run: passes=\n" + ir::Print(workload), TargetFlag(machine_)});
      const absl::StatusOr<space::Candidate> candidate = space::Build(workload, machine_.target, fitting, chooser);
      const absl::Status status = candidate.ok() ? Try(workload, candidate->schedule, sizes, what) : candidate.status();
      if (absl::IsFailedPrecondition(status)) {
        ++counts_.dropped;
        continue;
      }
      HONE_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Try(const ir::Workload& workload, const schedule::Schedule& schedule, const std::vector<SizeMap>& sizes,
                   const std::string& what) {
    std::string passes = "all";
    if (machine_.target.facts().has_grid) passes += "," + JoinNames<ir::Func>(passes::GridPasses());
    const std::string text =
        fmt::format("# run: passes={}\n{}schedule\n{}", passes, ir::Print(workload), schedule::Print(schedule));
    const std::string flags =
        fmt::format("--verify-each {}{}", InterpretFlag(!workload.sizes.empty()), TargetFlag(machine_));
    watch_({what + ", as text", text, flags});
    HONE_ASSIGN_OR_RETURN(const schedule::Schedule read, schedule::ParseSchedule(schedule::Print(schedule)));
    if (schedule::Print(read) != schedule::Print(schedule))
      return absl::DataLossError("its text reads back as another");
    watch_({what + ", lowered and interpreted", text, flags});
    HONE_RETURN_IF_ERROR(tests::CheckLowered(workload, schedule, machine_.target, ToleranceOf(workload), sizes));
    ++counts_.lowered;
    if (!machine_.run || random_.Below(machine_.share) != 0) return absl::OkStatus();
    watch_({fmt::format("{}, compiled and run ({})", what, machine_.name), text, flags});
    HONE_RETURN_IF_ERROR(machine_.run(workload, schedule, ToleranceOf(workload), sizes));
    ++counts_.run;
    return absl::OkStatus();
  }

  const Machine& machine_;
  const Watch& watch_;
  Counts& counts_;
  Random random_;
};

}  // namespace

absl::Status CheckGraph(uint64_t seed, bool open, const Machine& machine, const Watch& watch, Counts& counts) {
  watch({"making the graph", "", ""});
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, MakeRandomGraph(seed, open));
  return CheckGraph(std::move(graph), seed, machine, watch, counts);
}

absl::Status CheckGraph(graph::Graph graph, uint64_t seed, const Machine& machine, const Watch& watch, Counts& counts) {
  const bool open = !graph.sizes.empty();
  ++counts.graphs;
  counts.nodes += static_cast<int64_t>(graph.nodes.size());
  watch({"the passes over the graph", "# run: passes=all\n" + graph::Print(graph),
         fmt::format("--verify-each {}--seed={} {}", InterpretFlag(open), seed, TargetFlag(machine))});
  HONE_RETURN_IF_ERROR(graph::Verify(graph));
  HONE_RETURN_IF_ERROR(CheckText(graph));
  const std::vector<SizeMap> sizes = DrawSizes(graph.sizes, seed);
  const tests::Tolerance tolerance = ToleranceOf(graph);
  HONE_ASSIGN_OR_RETURN(const std::vector<opt::Tensors> expected, RunAtSizes(graph, sizes, seed));
  graph.target = machine.target;
  HONE_RETURN_IF_ERROR(graph::RunPasses(graph, {.verify = true}));
  HONE_ASSIGN_OR_RETURN(const std::vector<opt::Tensors> passed, RunAtSizes(graph, sizes, seed));
  HONE_RETURN_IF_ERROR(CheckSame(expected, passed, sizes, tolerance));
  watch({"the plan", "# run: passes=\n" + graph::Print(graph), TargetFlag(machine)});
  HONE_ASSIGN_OR_RETURN(const graph::Plan plan, graph::BuildPlan(graph));
  if (open) {  // else RunAtSizes has run the plan
    HONE_ASSIGN_OR_RETURN(const std::vector<opt::Tensors> planned, RunAtSizes(plan, sizes, seed));
    HONE_RETURN_IF_ERROR(CheckSame(expected, planned, sizes, tolerance));
  }
  WorkloadCheck check(machine, watch, counts, seed);
  for (int w = 0; w < static_cast<int>(plan.workloads.size()); ++w) {
    HONE_RETURN_IF_ERROR(check.Run(plan.workloads[static_cast<size_t>(w)], SizesOfWorkload(plan, w, sizes)));
  }
  return absl::OkStatus();
}

}  // namespace hone::fuzz
