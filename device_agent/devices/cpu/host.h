// SPDX-License-Identifier: Apache-2.0
// The host's CPUs: description (fingerprint), sensors and self-test.
//
// All facts come from files of the operating system; a fact that a board does not report stays empty. `root` is the
// folder that holds /proc and /sys, so that tests can present other boards.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_HOST_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_HOST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cpu_cores.h"
#include "device_agent/devices/device_facts.h"
#include "device_agent/visit/batch.h"

namespace hone::agent {

// The cores of this machine that form one device.
struct ChosenCores {
  CoreGroup cores;
  std::string name;  // "1/2": the fastest of two groups; empty if all cores are alike
};

// selector: "2" is the second fastest group of cores (base/cpu_cores.h), "all" is all cores, "" the fastest group.
// kNotFound: no such group; the text names the existing ones.
absl::StatusOr<ChosenCores> ChooseCores(const std::string& selector, const std::string& root = "/");

DeviceFingerprint DetectHost(const ChosenCores& chosen, const std::string& root = "/");
// Describes the fastest group.
DeviceFingerprint DetectHost(const std::string& root = "/");

// Reads anew what may change while the agent runs, and leaves the hardware as it is: kernel, governor, boost, SMT, huge
// pages and memory. cpus: of the device; empty: any.
void ReadEnvironment(const std::vector<int>& cpus, DeviceFingerprint& fingerprint, const std::string& root = "/");

// The hardware fields in one line of words; see types.proto.
std::string FingerprintText(const DeviceFingerprint& fingerprint);

Sensors ReadHostSensors(const std::string& root = "/");

// Runs the reference loop, measures peak and bandwidth with `threads` threads. Takes some 50 ms; nothing else should
// run.
SelfTestResult TestHost(int threads);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_HOST_H_
