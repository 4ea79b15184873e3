// SPDX-License-Identifier: Apache-2.0
// A device with memory of its own that runs no code: it computes what the name of a function says.
//
// Holds the conformance suite to what a device must do rather than to what a CPU happens to do. Its functions are those
// of hand_made_kernels.cc that the suite calls; buffers lie between canaries, as on a device without guard pages.
#ifndef HONE_TESTS_CONFORMANCE_DEVICE_FAKE_DEVICE_H_
#define HONE_TESTS_CONFORMANCE_DEVICE_FAKE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "device_agent/devices/device.h"

namespace hone::agent {

// What tells it from a device that is always the same and large enough.
struct FakeNature {
  // What was asked before, in the same session, and now: how many calls are to be timed in a row.
  struct Asked {
    int64_t calls, timed, references;
  };
  std::function<double(const Asked&)> seconds;  // that it says a call, or the reference, took; empty: what they did
  int room = std::numeric_limits<int>::max();   // for so many kernels at a time
};

class FakeDevice : public Device {
 public:
  // folder: where processes that build the function "beside" leave a file; it is built only beside another one. And
  // where every process in which it was started leaves one: "started-PID". It does not start beside a file "broken",
  // which whoever builds the function "breaks" leaves.
  // built: whether it takes all batches for built already.
  explicit FakeDevice(int builders = 0, std::string folder = "", double load_seconds = 0.5, bool built = false)
      : builders_(builders), folder_(std::move(folder)), load_seconds_(load_seconds), built_(built) {}
  explicit FakeDevice(FakeNature nature) : FakeDevice() { nature_ = std::move(nature); }
  std::string id() const override { return "fake"; }
  absl::StatusOr<DeviceFingerprint> Fingerprint() override;
  SelfTestResult SelfTest(int threads) override;
  Sensors ReadSensors() const override { return {42.0, 1000.0}; }
  SandboxPolicy sandbox() const override;
  double load_seconds() const override { return load_seconds_; }
  int Builders() const override { return builders_; }
  bool IsBuilt(const VisitBatch&) const override { return built_; }
  absl::StatusOr<std::unique_ptr<StartedDevice>> Start(int threads) const override;

 private:
  const int builders_;
  const std::string folder_;
  const double load_seconds_;
  const bool built_;
  FakeNature nature_;
};

}  // namespace hone::agent

#endif  // HONE_TESTS_CONFORMANCE_DEVICE_FAKE_DEVICE_H_
