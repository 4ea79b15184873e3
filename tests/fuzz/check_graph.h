// SPDX-License-Identifier: Apache-2.0
// Compiles one random graph and compares every step with the interpreter.
#ifndef HONE_TESTS_FUZZ_CHECK_GRAPH_H_
#define HONE_TESTS_FUZZ_CHECK_GRAPH_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "tests/unit/space/problem.h"

namespace hone::fuzz {

// A target for kernels, and the function that runs them.
struct Machine {
  std::string name;
  target::Target target;
  // Returns OK if the compiled kernel agrees with the interpreter at each of the sizes, FailedPrecondition if the
  // schedule cannot be lowered. Empty: kernels for this target cannot run here.
  std::function<absl::Status(const ir::Workload&, const schedule::Schedule&, tests::Tolerance,
                             const std::vector<tests::SizeMap>& sizes)>
      run;
  int share = 1;  // one in `share` schedules is compiled and run
};

struct Counts {
  int64_t graphs = 0, nodes = 0, workloads = 0, lowered = 0, run = 0;
  int64_t open = 0;     // workloads with open sizes
  int64_t dropped = 0;  // schedules that cannot be lowered, which a search would drop too
};

// The current step, written before it begins, so that it is known even after a crash.
struct Attempt {
  std::string what;
  std::string text;
  std::string flags;  // `text` is input for hone-opt with these flags
};
using Watch = std::function<void(const Attempt& attempt)>;

// Returns the first failure; the last attempt is the one that failed. open: the graph has open sizes. It is compiled
// once, and everything runs at several sizes: the smallest, the largest, and random ones.
absl::Status CheckGraph(uint64_t seed, bool open, const Machine& machine, const Watch& watch, Counts& counts);
// The same for the given graph. seed: of the schedules, sizes and inputs.
absl::Status CheckGraph(graph::Graph graph, uint64_t seed, const Machine& machine, const Watch& watch, Counts& counts);

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_CHECK_GRAPH_H_
