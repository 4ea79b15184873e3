// SPDX-License-Identifier: Apache-2.0
// The description of a device and the result of its self-test, as plain values. The fields mean what proto/hone/v1 says
// (types.proto: DeviceFingerprint; agent.proto: SelfTest); device_convert.h writes the messages.
#ifndef HONE_DEVICE_AGENT_DEVICES_DEVICE_FACTS_H_
#define HONE_DEVICE_AGENT_DEVICES_DEVICE_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/roofline.h"

namespace hone::agent {

struct CacheLevel {
  int level = 0;
  std::string type;  // "data", "instruction" or "unified"
  int64_t bytes = 0;
  int line_bytes = 0;
  int shared_by = 0;  // logical CPUs
};

// A field is empty or 0 if the device does not report it.
struct DeviceFingerprint {
  std::string architecture, cpu_model;
  std::vector<std::string> cpu_features;  // sorted
  int physical_cores = 0, logical_cpus = 0;
  std::vector<CacheLevel> caches;
  int64_t memory_bytes = 0;
  std::string kernel, governor, boost, smt, huge_pages, driver;
  std::string core_group;    // "1/2": the fastest of two groups of cores; empty if all cores are alike
  std::string text, digest;  // one line for the hardware, and its SHA-256
  std::string place;         // distinguishes the devices of one kind in this machine; not sent
};

struct SelfTestResult {
  bool passed = false;
  std::string reason;  // why it failed; empty if it passed
  double reference_seconds = 0;
  double noise = 0;  // as a fraction
  std::optional<double> temperature_c;
  Roofline roofline;  // without levels where it was not measured
  bool busy = false;  // another process has exclusive use of the device; nothing was measured
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_DEVICE_FACTS_H_
