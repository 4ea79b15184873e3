// SPDX-License-Identifier: Apache-2.0
// hone-opt as a function: runs any list of passes on text. docs/PASSES.md shows its use.
//
// The text is a func (or several), a workload with a schedule, or a graph, by its first word. What stands behind a line
// "----" is not read, so that golden files and reproducers are inputs too.
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

enum class Show : uint8_t {
  kResult,
  kChanged,
  kAll
};  // print the program at the end, after passes that changed it, or all

struct OptOptions {
  std::string passes;  // with commas between; empty: those that the text names in its head, "# run: passes=peel,unroll"
  Show show = Show::kResult;
  target::Target target;  // what workloads and graphs are lowered for
  bool verify_each = false;
  bool time_passes = false;
  bool interpret = false;        // compare what the program computes before the passes and after each
  uint64_t seed = 1;             // of the values for interpret
  bool all_constants = false;    // write a graph's constants in full
  std::string reproducers = {};  // folder; empty: none
  std::function<void(std::string_view line)> say = {};  // gets times and the programs between passes
};

// The passes there are. Tests put broken ones in their place.
struct PassTables {
  std::span<const Pass<ir::Func>> func = passes::FuncPasses();
  std::span<const Pass<ir::Func>> grid = passes::GridPasses();  // by name: "all" is without them, and does not split
  std::span<const Pass<graph::Graph>> graph = graph::GraphPasses();
};

// The text of the program after the passes. A workload is followed by a line "schedule" and steps; its list begins with
// build_loops, and "all" includes it. Errors: InvalidArgument with line and column for bad text, or naming what is
// known for an unknown pass; those of RunPasses. In the list of a func, split_launches makes a func of every launch,
// and what follows it runs on each.
absl::StatusOr<std::string> Opt(std::string_view text, const OptOptions& options, const PassTables& tables = {});

}  // namespace hone::opt

#endif  // HONE_COMPILER_OPT_OPT_H_
