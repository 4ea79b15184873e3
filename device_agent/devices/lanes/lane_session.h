// SPDX-License-Identifier: Apache-2.0
// A session on a device with lanes, in a child, for every driver of drivers/lane_drivers.h: one program per kernel,
// built from its code in the artifact, and buffers between canaries.
#ifndef HONE_DEVICE_AGENT_DEVICES_LANES_LANE_SESSION_H_
#define HONE_DEVICE_AGENT_DEVICES_LANES_LANE_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device_agent/devices/device.h"
#include "device_agent/devices/lanes/reference_kernel.h"
#include "drivers/lane_drivers.h"

namespace hone::agent {

// A buffer between canaries, which the host reads back, because the device has no guard pages.
template <typename Driver>
struct CanaryBuffer {
  std::string name;  // for messages
  typename Driver::Buffer whole, data;
  absl::Status StoreCanaries(const typename Driver::Device& device, ResultMemory& result_memory) const;
};

template <typename Driver>
class StartedLaneDevice : public StartedDevice {
 public:
  // folder: for files that the driver keeps.
  static absl::StatusOr<std::unique_ptr<StartedDevice>> Start(typename Driver::Device device, std::string folder);
  absl::StatusOr<std::unique_ptr<Session>> Open(const SessionOptions& options) override;

 private:
  StartedLaneDevice(typename Driver::Device device, std::string folder, ReferenceKernel<Driver> reference)
      : device_(std::move(device)), folder_(std::move(folder)), reference_(std::move(reference)) {}

  typename Driver::Device device_;
  std::string folder_;
  ReferenceKernel<Driver> reference_;
};

template <typename Driver>
class LaneSession : public Session {
 public:
  LaneSession(typename Driver::Device device, std::string folder, ReferenceKernel<Driver> reference,
              const SessionOptions& options)
      : device_(std::move(device)),
        folder_(std::move(folder)),
        options_(options),
        batch_(*options.batch),
        reference_(std::move(reference)) {}
  // Call it first.
  absl::Status MakeBuffers();

  absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(const VisitKernel& kernel) override;
  absl::Status ClearOutputs() override;
  absl::Status CopyOutput(int buffer, std::span<char> to) override;
  absl::StatusOr<double> TimeReference() override { return reference_.Time(); }

 private:
  class Kernel;

  absl::Status MakeColdConstants();
  absl::StatusOr<CanaryBuffer<Driver>> Allocate(const std::string& name, int64_t bytes) const;
  // Whether the input on the device still equals the given one.
  absl::StatusOr<bool> IsInputUnchanged(size_t buffer);
  const char* InputData(size_t buffer) const { return options_.data + layout_.offsets[buffer]; }

  const typename Driver::Device device_;
  const std::string folder_;
  const SessionOptions options_;
  const VisitBatch& batch_;
  DataLayout layout_;
  ReferenceKernel<Driver> reference_;
  std::vector<CanaryBuffer<Driver>> shared_;  // the workload's own buffers, in the batch's order
  std::vector<CanaryBuffer<Driver>> sizes_;   // by point; empty if the kernels have no open sizes
  typename Driver::Buffer cold_;              // normal, finite numbers; empty if constants stay the same
  std::vector<char> part_;                    // scratch memory to read back a part of an input
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_LANES_LANE_SESSION_H_
