// SPDX-License-Identifier: Apache-2.0
// What a measuring child does: verifies the candidates one after the other, times each briefly, and then races those
// that were verified, here or by the child before it.
#ifndef HONE_DEVICE_AGENT_CHILD_RACE_H_
#define HONE_DEVICE_AGENT_CHILD_RACE_H_

#include "device_agent/child/child.h"

namespace hone::agent {

// child: of purpose kTiming, opened. Ends the process, and early after a candidate with which it is of no use any more:
// kernels are not unloaded, as a driver would wait for one that hangs.
[[noreturn]] void RunRace(Child& child);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CHILD_RACE_H_
