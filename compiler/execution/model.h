// SPDX-License-Identifier: Apache-2.0
// An execution model: how the kernels of some kinds of target come about and run, as a value. It lowers a schedule to
// launches, and knows the schedules that need no search. Passes, spaces and back ends ask it instead of asking which
// kind a target is.
//
// Not here: what graph passes and the search must know before there is a schedule (compiler/target/execution.h), and
// code generation (compiler/codegen/backend.h). A new model is a file beside threads.cc and lanes.cc, and its lines at
// the end of this header.
#ifndef HONE_COMPILER_EXECUTION_MODEL_H_
#define HONE_COMPILER_EXECUTION_MODEL_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "compiler/ir/workload.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"

namespace hone::execution {

struct ExecutionModel {
  // From scheduled loops to launches: which passes run, in which order, and how a launch is formed. Errors as Lower.
  absl::StatusOr<passes::Module> (*lower)(const schedule::State& state, const target::Target& target,
                                          const std::string& name, PassOptions<ir::Func> options);
  // FailedPrecondition for a schedule that no device of the target can launch, known without lowering it.
  absl::Status (*check_limits)(const schedule::State& state, const target::Target& target);
  // The naive schedule: every stage as the workload states it, correct and slow.
  schedule::Schedule (*naive_schedule)(const ir::Workload& workload, const target::Target& target);
  // The schedule of the reference kernel, whose outputs those of tuned kernels are compared with. kThreads: the last
  // axis of the result is the innermost loop of each reduction, where the compiler vectorizes it. kLanes: the naive
  // schedule.
  schedule::Schedule (*reference_schedule)(const ir::Workload& workload, const target::Target& target);
  // The steps that give one element per lane to every top-level stage that no step has touched; empty for kThreads.
  // After a space has scheduled all other stages, these are the stages that prepare constants. They run once, so their
  // speed does not matter.
  schedule::Schedule (*prepared_schedule)(const schedule::State& state, const target::Target& target);
  // With Effort::kReference (compiler/codegen), the back end vectorizes plain loops by itself. Kernels without a tuned
  // schedule are then compiled from the reference schedule with that effort, because it is faster than the naive one.
  bool compiler_vectorizes = false;
};

// The models, one a file.
extern const ExecutionModel kThreads;  // threads.cc
extern const ExecutionModel kLanes;    // lanes.cc

// The table of models: the model of each kind of target. The compiler rejects a missing kind.
inline const ExecutionModel& ModelOf(const target::Target& target) {
  switch (target.kind) {
    case target::Kind::kCpu:
      return kThreads;
    case target::Kind::kOpenCl:
    case target::Kind::kCuda:
      return kLanes;
  }
  HONE_CHECK(false);
  return kThreads;
}

// FailedPrecondition when the schedule cannot be lowered (too much local or shared storage, too many lanes, too much
// unrolling, an extent that had to be constant); Internal when a pass made illegal IR, naming the pass.
inline absl::StatusOr<passes::Module> Lower(const schedule::State& state, const target::Target& target,
                                            const std::string& name, PassOptions<ir::Func> options = {}) {
  return ModelOf(target).lower(state, target, name, std::move(options));
}

}  // namespace hone::execution

#endif  // HONE_COMPILER_EXECUTION_MODEL_H_
