// The whole lowering: from a scheduled State to the Func that a back end takes. Read Lower in pipeline.cc top to
// bottom.
#ifndef HONE_COMPILER_PASSES_PIPELINE_H_
#define HONE_COMPILER_PASSES_PIPELINE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/passes/build_loops.h"
#include "compiler/schedule/state.h"

namespace hone::passes {

struct LowerOptions {
  bool verify = false;  // check the legality rules of the IR after every pass
  // Called after every pass with its name and the function, if set.
  std::function<void(std::string_view pass, const ir::Func& func)> dump;
};

// Errors: FailedPrecondition when the schedule cannot be lowered (too much local storage, too much unrolling, an extent
// that had to be constant); Internal when a pass made illegal IR, naming the pass.
absl::StatusOr<Loops> Lower(const schedule::State& state, const std::string& name, const LowerOptions& options = {});

// Bytes of workspace that the function's Allocs of Scope::kWorkspace take, each rounded up to 64.
int64_t WorkspaceBytes(const ir::Func& func);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_PIPELINE_H_
