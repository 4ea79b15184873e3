// A visit's child on an OpenCL device: a program per kernel, built from its own code in the artifact, and buffers that
// lie between canaries.
#ifndef HONE_DEVICE_AGENT_OPENCL_OPENCL_SESSION_H_
#define HONE_DEVICE_AGENT_OPENCL_OPENCL_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device_agent/device.h"
#include "device_agent/opencl/driver.h"
#include "drivers/opencl.h"

namespace hone::agent {

// A buffer between canaries, which are looked at from here: the device has no guard pages.
struct CanaryBuffer {
  std::string name;  // for messages
  drivers::opencl::Buffer whole, data;
  absl::Status Show(const drivers::opencl::Device& device, Evidence& evidence) const;
};

class OpenClSession : public Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Open(drivers::opencl::Device device, std::string folder,
                                                       const SessionOptions& options);

  absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(const VisitKernel& kernel) override;
  absl::Status ClearOutputs() override;
  absl::StatusOr<const char*> Output(int buffer) override;
  absl::StatusOr<double> TimeReference() override { return reference_->Time(); }

 private:
  class Kernel;

  OpenClSession(drivers::opencl::Device device, std::string folder, const SessionOptions& options)
      : device_(std::move(device)), folder_(std::move(folder)), options_(options), batch_(*options.batch) {}
  absl::Status MakeBuffers();
  absl::Status MakeColdConstants();
  absl::StatusOr<CanaryBuffer> Allocate(const std::string& name, int64_t bytes) const;
  const char* Given(size_t buffer) const { return options_.data + layout_.offsets[buffer]; }

  const drivers::opencl::Device device_;
  const std::string folder_;
  const SessionOptions options_;
  const VisitBatch& batch_;
  DataLayout layout_;
  std::optional<ReferenceKernel> reference_;
  std::vector<CanaryBuffer> shared_;  // the workload's own buffers, in the batch's order
  drivers::opencl::Buffer cold_;      // normal, finite numbers; empty if constants stay the same
  std::vector<char> output_;          // of the last Output
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_OPENCL_OPENCL_SESSION_H_
