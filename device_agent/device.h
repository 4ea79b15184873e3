// The device this agent runs on: what it is (fingerprint), how it fares (sensors), whether it is fit (self-test).
//
// Everything is read from the kernel's files; what a board does not tell stays empty. `root` is the folder under which
// /proc and /sys are found, so that tests can show other boards.
#ifndef HONE_DEVICE_AGENT_DEVICE_H_
#define HONE_DEVICE_AGENT_DEVICE_H_

#include <optional>
#include <string>

#include "hone/v1/agent.pb.h"
#include "hone/v1/types.pb.h"

namespace hone::agent {

v1::DeviceFingerprint DetectDevice(const std::string& root = "/");

// The hardware fields in one line of words; see types.proto.
std::string FingerprintText(const v1::DeviceFingerprint& fingerprint);

struct Sensors {
  std::optional<double> temperature_c;  // hottest zone
  std::optional<double> clock_mhz;      // fastest CPU of those usable
};
Sensors ReadSensors(const std::string& root = "/");

// Runs the reference loop, measures peak and bandwidth with `threads` threads. Takes some 50 ms; nothing else should
// run.
v1::SelfTest RunSelfTest(int threads);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICE_H_
