// The host's CPUs: what they are (fingerprint), how they fare (sensors), whether they are fit (self-test).
//
// Everything is read from the kernel's files; what a board does not tell stays empty. `root` is the folder under which
// /proc and /sys are found, so that tests can show other boards.
#ifndef HONE_DEVICE_AGENT_CPU_HOST_H_
#define HONE_DEVICE_AGENT_CPU_HOST_H_

#include <string>

#include "device_agent/device_facts.h"
#include "device_agent/visit_batch.h"

namespace hone::agent {

DeviceFingerprint DetectHost(const std::string& root = "/");

// The hardware fields in one line of words; see types.proto.
std::string FingerprintText(const DeviceFingerprint& fingerprint);

Sensors ReadHostSensors(const std::string& root = "/");

// Runs the reference loop, measures peak and bandwidth with `threads` threads. Takes some 50 ms; nothing else should
// run.
SelfTestResult TestHost(int threads);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_CPU_HOST_H_
