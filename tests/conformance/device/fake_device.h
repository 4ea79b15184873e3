// SPDX-License-Identifier: Apache-2.0
// A device with memory of its own that runs no code: it computes the function whose name it is given.
//
// It shows whether the conformance suite requires only what every device must do, and not what a CPU happens to do. Its
// functions are those of hand_made_kernels.cc that the suite calls. Its buffers lie between canaries, as on a device
// without guard pages.
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

// Properties in which this device differs from one with constant speed and enough memory.
struct FakeNature {
  // One request for a time. calls: calls to time in a row. timed, references: earlier timings of the kernel and of the
  // reference loop in the same session.
  struct Asked {
    int64_t calls, timed, references;
  };
  // Returns the seconds that the device reports for a call or the reference loop; empty: the measured time.
  std::function<double(const Asked&)> seconds;
  int room = std::numeric_limits<int>::max();  // number of kernels that fit into its memory at a time
};

class FakeDevice : public Device {
 public:
  // builders: processes that build in parallel. folder: processes leave files there. A process that builds the function
  // "beside" leaves one and finishes only beside another. Every process that starts the device leaves "started-PID".
  // The function "breaks" leaves "broken" when it is built, and the device does not start while that file exists.
  // built: treats all batches as built already.
  explicit FakeDevice(int builders = 0, std::string folder = "", double load_seconds = 0.5, bool built = false)
      : builders_(builders), folder_(std::move(folder)), load_seconds_(load_seconds), built_(built) {}
  explicit FakeDevice(FakeNature nature) : FakeDevice() { nature_ = std::move(nature); }
  std::string id() const override { return "fake"; }
  absl::StatusOr<DeviceFingerprint> Fingerprint() override;
  SelfTestResult SelfTest(int threads) override;
  Sensors ReadSensors() const override { return {.temperature_c = 42, .clock_mhz = 1000}; }
  SandboxPolicy sandbox() const override;
  double load_seconds() const override { return load_seconds_; }
  int BuilderProcessesMax() const override { return builders_; }
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
