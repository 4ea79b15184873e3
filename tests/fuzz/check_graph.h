// SPDX-License-Identifier: Apache-2.0
// One random graph through the compiler, every step compared with the interpreter.
#ifndef HONE_TESTS_FUZZ_CHECK_GRAPH_H_
#define HONE_TESTS_FUZZ_CHECK_GRAPH_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "tests/unit/space/problem.h"

namespace hone::fuzz {

// What kernels are made for, and what runs them.
struct Machine {
  std::string name;
  target::Target target;
  // OK if the compiled kernel agrees with the interpreter; FailedPrecondition if the schedule cannot be lowered. Unset:
  // nothing here runs them.
  std::function<absl::Status(const ir::Workload&, const schedule::Schedule&, tests::Tolerance)> run;
  int share = 1;  // one in so many schedules is compiled and run
};

struct Counts {
  int64_t graphs = 0, nodes = 0, workloads = 0, lowered = 0, run = 0;
  int64_t dropped = 0;  // schedules that lead nowhere, as in a search
};

// What is being tried: written before each step, so that it is there also if the step crashes. `text` is for hone-opt.
struct Attempt {
  std::string what;
  std::string text;
  std::string flags;  // for hone-opt
};
using Watch = std::function<void(const Attempt& attempt)>;

// The first thing that is wrong; the last attempt is the one that failed.
absl::Status CheckGraph(uint64_t seed, const Machine& machine, const Watch& watch, Counts& counts);

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_CHECK_GRAPH_H_
