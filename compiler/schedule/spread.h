// SPDX-License-Identifier: Apache-2.0
// The naive schedule for a target with lanes: each lane computes one element of a stage.
#ifndef HONE_COMPILER_SCHEDULE_SPREAD_H_
#define HONE_COMPILER_SCHEDULE_SPREAD_H_

#include <cstdint>

#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace hone::schedule {

// Steps that bind every top-level stage without steps to groups of at most `lanes` lanes, prepared stages included.
// They apply to the given state, in order. Stages with no or one element are left out.
Schedule SpreadOverLanes(const State& state, int64_t lanes);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_SPREAD_H_
