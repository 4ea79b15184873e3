// SPDX-License-Identifier: Apache-2.0
// The meaning of the steps: each Apply checks that its step is legal, then rewrites the state. One .cc file per step.
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

absl::Status Apply(const Split& step, State& state);
absl::Status Apply(const Fuse& step, State& state);
absl::Status Apply(const Reorder& step, State& state);
absl::Status Apply(const Annotate& step, State& state);
absl::Status Apply(const StoreIn& step, State& state);
absl::Status Apply(const ComputeAt& step, State& state);
absl::Status Apply(const Inline& step, State& state);
absl::Status Apply(const CacheWrite& step, State& state);
absl::Status Apply(const CacheRead& step, State& state);
absl::Status Apply(const SplitAxis& step, State& state);
absl::Status Apply(const Pack& step, State& state);
absl::Status Apply(const Rfactor& step, State& state);
absl::Status Apply(const SkipPadding& step, State& state);
absl::Status Apply(const TotalOrder& step, State& state);
absl::Status Apply(const Recode& step, State& state);
absl::Status Apply(const Round& step, State& state);
absl::Status Apply(const Distribute& step, State& state);
absl::Status Apply(const Winograd& step, State& state);
absl::Status Apply(const Tensorize& step, State& state);
absl::Status Apply(const CopyAsync& step, State& state);
absl::Status Apply(const Pipeline& step, State& state);
absl::Status Apply(const Prefetch& step, State& state);

absl::Status Apply(const Step& step, State& state);
// Applies all steps to a fresh state. An error names the step.
absl::StatusOr<State> Replay(const ir::Workload& workload, const Schedule& schedule);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_APPLY_H_
