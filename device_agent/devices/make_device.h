// SPDX-License-Identifier: Apache-2.0
// From what a person writes to a device: "opencl" is the first one of that kind, "opencl:NAME" the one called so.
#ifndef HONE_DEVICE_AGENT_DEVICES_MAKE_DEVICE_H_
#define HONE_DEVICE_AGENT_DEVICES_MAKE_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "device_agent/devices/device.h"

namespace hone::agent {

// All that a person may write, for help and messages: "cpu, cpu:N, opencl, opencl:NAME".
std::string DeviceKinds();

// folder: for what a driver keeps between visits; this agent's alone, and lives as long as it.
// kInvalidArgument: no kind of device is called so; whether this machine has it, only Fingerprint tells.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const std::string& text, const std::string& folder);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_MAKE_DEVICE_H_
