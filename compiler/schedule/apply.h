// SPDX-License-Identifier: Apache-2.0
// Applies steps to a state. Each step has an Apply of its own, declared below it in step.h, with a file in steps/. It
// checks that the step is legal, then rewrites the state.
//
// Errors: NotFound if there is no such loop or stage; FailedPrecondition if the step does not fit the state, with the
// loop and the reason. After an error the state is unspecified and must be discarded.
#ifndef HONE_COMPILER_SCHEDULE_APPLY_H_
#define HONE_COMPILER_SCHEDULE_APPLY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace hone::schedule {

absl::Status Apply(const Step& step, State& state);  // the Apply of the step that it holds
// Applies all steps to a fresh state. An error names the step.
absl::StatusOr<State> Replay(const ir::Workload& workload, const Schedule& schedule);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_APPLY_H_
