// SPDX-License-Identifier: Apache-2.0
// The work of a measuring child: verifies the candidates one by one, times each briefly, then races the verified ones,
// also those that an earlier child of the visit verified.
#ifndef HONE_DEVICE_AGENT_CHILD_RACE_H_
#define HONE_DEVICE_AGENT_CHILD_RACE_H_

#include "device_agent/child/child.h"

namespace hone::agent {

// `child` must be open, with purpose kTiming. Ends the process; early if a candidate may have damaged it. Kernels stay
// loaded at the end, because a driver would wait for one that hangs.
[[noreturn]] void RunRace(Child& child);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_RACE_H_
