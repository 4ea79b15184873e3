// SPDX-License-Identifier: Apache-2.0
// Converts the facts of a device (device_facts.h) and the layers of its sandbox (sandbox/sandbox.h) to messages and
// back.
#ifndef HONE_DEVICE_AGENT_DEVICES_DEVICE_CONVERT_H_
#define HONE_DEVICE_AGENT_DEVICES_DEVICE_CONVERT_H_

#include <vector>

#include "device_agent/devices/device_facts.h"
#include "device_agent/sandbox/sandbox.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/run.pb.h"
#include "hone/v1/types.pb.h"

namespace hone::agent {

v1::DeviceFingerprint ToProto(const DeviceFingerprint& fingerprint);
// The part of the fingerprint that runs report.
v1::RunEnvironment ToRunEnvironment(const DeviceFingerprint& fingerprint);
v1::DeviceRoofline ToProto(const Roofline& roofline);
v1::SelfTest ToProto(const SelfTestResult& test);
v1::SandboxLayer ToProto(const SandboxLayer& layer);
v1::Sandbox ToProto(const std::vector<SandboxLayer>& layers);
std::vector<SandboxLayer> FromProto(const v1::Sandbox& sandbox);  // skips layers that this version does not know

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_DEVICE_CONVERT_H_
