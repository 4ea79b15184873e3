// SPDX-License-Identifier: Apache-2.0
// The first pass of lowering: a scheduled State becomes loops, stores and allocations.
#ifndef HONE_COMPILER_PASSES_BUILD_LOOPS_H_
#define HONE_COMPILER_PASSES_BUILD_LOOPS_H_

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace hone::passes {

// The kernel as two functions that share buffers. `main` takes params, packed constants and outputs. `prepare` takes
// params and packed constants and fills the latter; its body is undefined if nothing is packed. The name of `prepare`
// is derived from its content, because many schedules of a workload have the same one: a caller with several kernels
// can then compile and run it once.
struct Loops {
  ir::Func main;
  ir::Func prepare;
  std::vector<ir::Buffer> packed;  // results of prepared stages that `main` reads, in the order of its params
  ir::Buffer sizes;  // i64: the values of the open sizes, the last param of `main`; null if there are none
};

// Errors: FailedPrecondition if local storage exceeds what the target gives a thread or lane, if the target lacks an
// instruction or a kind of copy, or if tiles overlap inside a reduction.
absl::StatusOr<Loops> BuildLoops(const schedule::State& state, const target::Target& target, const std::string& name);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_BUILD_LOOPS_H_
