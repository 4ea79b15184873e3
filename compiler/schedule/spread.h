// SPDX-License-Identifier: Apache-2.0
// The plainest schedule for a target with lanes: every element of a stage is one lane's work.
#ifndef HONE_COMPILER_SCHEDULE_SPREAD_H_
#define HONE_COMPILER_SCHEDULE_SPREAD_H_

#include <cstdint>

#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace hone::schedule {

// Steps that spread every root stage which no step has touched over groups of at most `lanes` lanes, prepared stages
// too. They can be applied to the state as it is, in order. Stages without elements, or with one, are left as they are.
Schedule SpreadOverLanes(const State& state, int64_t lanes);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_SPREAD_H_
