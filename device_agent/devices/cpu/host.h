// SPDX-License-Identifier: Apache-2.0
// The host's CPUs: what they are (fingerprint), how they fare (sensors), whether they are fit (self-test); and how much
// of the host its control groups leave to this process.
//
// Everything is read from the kernel's files; what a board does not tell stays empty. `root` is the folder under which
// /proc and /sys are found, so that tests can show other boards.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_HOST_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_HOST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/cpu_cores.h"
#include "device_agent/devices/device_facts.h"
#include "device_agent/visit/batch.h"

namespace hone::agent {

// The cores of this machine that are one device.
struct ChosenCores {
  CoreGroup cores;
  std::string name;  // "1/2": the fastest of two groups; empty where all cores are alike
};

// selector: "2" is the second fastest group of cores (base/cpu_cores.h), "all" all together, "" the fastest.
// kNotFound: there is none such; the text names those there are.
absl::StatusOr<ChosenCores> ChooseCores(const std::string& selector, const std::string& root = "/");

DeviceFingerprint DetectHost(const ChosenCores& chosen, const std::string& root = "/");
// Of the fastest group.
DeviceFingerprint DetectHost(const std::string& root = "/");

// The hardware fields in one line of words; see types.proto.
std::string FingerprintText(const DeviceFingerprint& fingerprint);

Sensors ReadHostSensors(const std::string& root = "/");

// Bytes that this process may use, as far as its control groups limit it (base/control_groups.h).
int64_t HostMemory(const std::string& root = "/");

// Runs the reference loop, measures peak and bandwidth with `threads` threads. Takes some 50 ms; nothing else should
// run.
SelfTestResult TestHost(int threads);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_HOST_H_
