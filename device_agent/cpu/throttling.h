// Whether a board says that it slows its CPUs down now, for heat or for want of power.
//
// Only what a board states outright: times tell the rest (golden.h). Known so far: Raspberry Pi. `root` is the folder
// under which /sys is found, so that tests can show other boards.
#ifndef HONE_DEVICE_AGENT_CPU_THROTTLING_H_
#define HONE_DEVICE_AGENT_CPU_THROTTLING_H_

#include <string>

namespace hone::agent {

bool SaysThrottled(const std::string& root = "/");  // false where it does not say

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CPU_THROTTLING_H_
