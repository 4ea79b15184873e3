// SPDX-License-Identifier: Apache-2.0
// hone-opt as a function: runs any list of passes on a program in text form. docs/PASSES.md shows its use.
//
// The first word of the text decides its kind: a func (or several), a workload with a schedule, or a graph. Text after
// a line "----" is ignored, so golden files and reproducers can be inputs.
#ifndef HONE_COMPILER_OPT_OPT_H_
#define HONE_COMPILER_OPT_OPT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/graph/passes/pipeline.h"
#include "compiler/passes/pipeline.h"
#include "compiler/target/target.h"

namespace hone::opt {

// Which programs are printed.
enum class Show : uint8_t {
  kResult,   // the program after the last pass
  kChanged,  // also the program after each pass that changed it
  kAll,      // also the program after every pass
};

struct OptOptions {
  std::string passes;  // separated by commas; empty: the list in the text's head, "# run: passes=peel,unroll"
  Show show = Show::kResult;
  target::Target target;  // the target for workloads and graphs
  bool verify_each = false;
  bool time_passes = false;
  // Compare the program's results before the passes and after each, by ExpectSame (random_run.h). The tolerance is 1e-4
  // for graph passes and for build_loops, which may reorder sums, and 0 for passes over funcs.
  bool interpret = false;
  uint64_t seed = 1;                                    // seed of the random inputs for interpret
  bool all_constants = false;                           // write a graph's constants in full
  std::string reproducers = {};                         // folder for reproducers; empty: none are written
  std::function<void(std::string_view line)> say = {};  // called with times and the programs between passes
};

// The available passes. Tests replace them by broken ones.
struct PassTables {
  std::span<const Pass<ir::Func>> func = passes::FuncPasses();
  std::span<const Pass<ir::Func>> grid =
      passes::GridPasses();  // selected by name only: "all" includes neither them nor split_launches
  std::span<const Pass<graph::Graph>> graph = graph::GraphPasses();
};

// Runs the passes and returns the text of the resulting program. A workload's text is followed by a line "schedule" and
// steps; its pass list begins with build_loops, and "all" includes it. In the list of a func, split_launches turns
// every launch into a func of its own, and later passes run on each of them. Errors: InvalidArgument with line and
// column for invalid text; InvalidArgument listing the known passes for an unknown name; the errors of RunPasses.
absl::StatusOr<std::string> Opt(std::string_view text, const OptOptions& options, const PassTables& tables = {});

}  // namespace hone::opt

#endif  // HONE_COMPILER_OPT_OPT_H_
