// SPDX-License-Identifier: Apache-2.0
// The nodes of devices that drivers of devices with lanes speak to: all of /dev that is left behind the wall, by reason
// (docs/SANDBOX.md). A node that is missing for a driver belongs into the table.
#ifndef HONE_DEVICE_AGENT_DEVICES_LANES_NODES_OF_DRIVERS_H_
#define HONE_DEVICE_AGENT_DEVICES_LANES_NODES_OF_DRIVERS_H_

#include <string>
#include <vector>

namespace hone::agent {

// For SandboxPolicy::nodes, which need not be there. Asks nothing of the system: what is confined could not.
std::vector<std::string> NodesOfCuda();
std::vector<std::string> NodesOfOpenCl();  // whose drivers NVIDIA's is one of

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_LANES_NODES_OF_DRIVERS_H_
