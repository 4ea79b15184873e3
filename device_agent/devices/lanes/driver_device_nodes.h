// SPDX-License-Identifier: Apache-2.0
// The device nodes in /dev that drivers of devices with lanes use: the only ones that the sandbox shows
// (docs/SANDBOX.md). Add a node here if a driver lacks it.
#ifndef HONE_DEVICE_AGENT_DEVICES_LANES_DRIVER_DEVICE_NODES_H_
#define HONE_DEVICE_AGENT_DEVICES_LANES_DRIVER_DEVICE_NODES_H_

#include <string>
#include <vector>

namespace hone::agent {

// For SandboxPolicy::nodes; some may be absent. They read nothing from the system, because confined processes call
// them.
std::vector<std::string> CudaDeviceNodes();
std::vector<std::string> OpenClDeviceNodes();  // includes CudaDeviceNodes, as NVIDIA has an OpenCL driver

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_LANES_DRIVER_DEVICE_NODES_H_
