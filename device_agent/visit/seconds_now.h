// SPDX-License-Identifier: Apache-2.0
// The steady clock by which the launcher and its children measure, and in which they exchange deadlines.
#ifndef HONE_DEVICE_AGENT_VISIT_SECONDS_NOW_H_
#define HONE_DEVICE_AGENT_VISIT_SECONDS_NOW_H_

#include <chrono>

namespace hone::agent {

// Seconds since a fixed point of the steady clock, which all processes of one machine share.
inline double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_VISIT_SECONDS_NOW_H_
