// The facts of a device (device_facts.h) as messages.
#ifndef HONE_DEVICE_AGENT_DEVICE_CONVERT_H_
#define HONE_DEVICE_AGENT_DEVICE_CONVERT_H_

#include "device_agent/device_facts.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/types.pb.h"

namespace hone::agent {

v1::DeviceFingerprint ToProto(const DeviceFingerprint& fingerprint);
v1::SelfTest ToProto(const SelfTestResult& test);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICE_CONVERT_H_
