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

// The kernel in two functions with one list of buffers. `main` takes params, packed constants, outputs; `prepare` (body
// undefined if nothing is packed) takes params and packed constants and fills the latter. It is named by what it does:
// many schedules of a workload have the same one, which whoever has several kernels then makes and runs once.
struct Loops {
  ir::Func main;
  ir::Func prepare;
  std::vector<ir::Buffer> packed;
};

// Errors: FailedPrecondition when local storage would not fit what a thread or lane of the target has, or tiles overlap
// inside a reduction.
absl::StatusOr<Loops> BuildLoops(const schedule::State& state, const target::Target& target, const std::string& name);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_BUILD_LOOPS_H_
