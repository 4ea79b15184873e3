// SPDX-License-Identifier: Apache-2.0
// Creates a device from a text of the user: "opencl" is the first device of that kind, "opencl:NAME" the one of that
// name.
#ifndef HONE_DEVICE_AGENT_DEVICES_MAKE_DEVICE_H_
#define HONE_DEVICE_AGENT_DEVICES_MAKE_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "device_agent/devices/device.h"

namespace hone::agent {

// All texts that MakeDevice accepts, for help and messages: "cpu, cpu:N, opencl, opencl:NAME".
std::string DeviceKinds();

// folder: for files that a driver keeps between visits; used by this agent alone, and must outlive the device.
// kInvalidArgument: no kind of device has that name. Whether this machine has such a device, only Fingerprint tells.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const std::string& text, const std::string& folder);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_MAKE_DEVICE_H_
