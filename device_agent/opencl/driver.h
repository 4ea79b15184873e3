// The OpenCL driver as the agent uses it: opened with the settings that measuring needs, its errors as statuses, and a
// fixed kernel that shows when the device drifts.
#ifndef HONE_DEVICE_AGENT_OPENCL_DRIVER_H_
#define HONE_DEVICE_AGENT_OPENCL_DRIVER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/opencl.h"

namespace hone::agent {

// kUnavailable: no such library or device here. kInvalidArgument: the device refuses the program or the launch.
// kDeadlineExceeded: it did not end in time and still runs. kInternal: the device or its driver failed.
absl::Status ToStatus(const drivers::Error& error);

// The device of that selector. threads: of a device that runs on the host's CPUs; 0 for all. Once per process.
absl::StatusOr<drivers::opencl::Device> OpenDriver(const std::string& selector, const std::string& folder, int threads);

// Far enough away for anything that ends: what does not is the launcher's to end.
drivers::opencl::Deadline NoDeadline();

// Seconds of the list, by the device's clock where that makes sense, else by ours.
double SecondsOf(const drivers::opencl::Timing& timing);

// The fixed kernel.
class ReferenceKernel {
 public:
  static absl::StatusOr<ReferenceKernel> Create(const drivers::opencl::Device& device, const std::string& folder);
  absl::StatusOr<double> Time() const;
  // Whether it computes what it should: false means a broken device.
  absl::StatusOr<bool> IsRight() const;

 private:
  absl::Status Run() const;
  drivers::opencl::Launch Launch() const;

  drivers::opencl::Device device_;
  drivers::opencl::Program program_;
  drivers::opencl::Kernel kernel_;
  drivers::opencl::Buffer output_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_OPENCL_DRIVER_H_
