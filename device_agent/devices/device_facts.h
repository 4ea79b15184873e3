// SPDX-License-Identifier: Apache-2.0
// What a device is, and whether it is fit, in plain values. What the fields mean is said in proto/hone/v1: types.proto
// (DeviceFingerprint) and agent.proto (SelfTest); device_convert.h writes the messages.
#ifndef HONE_DEVICE_AGENT_DEVICES_DEVICE_FACTS_H_
#define HONE_DEVICE_AGENT_DEVICES_DEVICE_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hone::agent {

struct CacheLevel {
  int level = 0;
  std::string type;  // "data", "instruction" or "unified"
  int64_t bytes = 0;
  int line_bytes = 0;
  int shared_by = 0;  // logical CPUs
};

// Empty or 0 where a device does not say.
struct DeviceFingerprint {
  std::string architecture, cpu_model;
  std::vector<std::string> cpu_features;  // sorted
  int physical_cores = 0, logical_cpus = 0;
  std::vector<CacheLevel> caches;
  int64_t memory_bytes = 0;
  std::string kernel, governor, boost, smt, huge_pages;
  std::string core_group;    // "1/2": of two groups of cores the fastest; empty where all are alike
  std::string text, digest;  // one line for the hardware, and its SHA-256
  std::string place;         // no other device of its kind in this machine has it; not sent
};

struct SelfTestResult {
  bool passed = false;
  std::string reason;  // why it has not passed
  double reference_seconds = 0;
  double noise = 0;  // as a fraction
  std::optional<double> temperature_c;
  double peak_gflops = 0, bandwidth_gbps = 0;
  bool busy = false;  // another process has the device for itself: nothing was measured
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_DEVICE_FACTS_H_
