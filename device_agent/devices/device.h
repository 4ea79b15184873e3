// SPDX-License-Identifier: Apache-2.0
// The interface of a kind of device, on which kernels are measured. Four classes: the agent and the launcher hold a
// Device, which describes it. Only a child opens the others: StartedDevice, whose driver runs in this process, Session,
// which has the buffers of one batch, and LoadedKernel.
//
// A new kind of device implements the four classes in a folder of its own and has a row in make_device.cc.
// tests/conformance/device tests it. Not here: the order of a visit (child/race.h) and blame (launcher/visit_runner.h),
// which are the same for all devices.
#ifndef HONE_DEVICE_AGENT_DEVICES_DEVICE_H_
#define HONE_DEVICE_AGENT_DEVICES_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/devices/device_facts.h"
#include "device_agent/sandbox/sandbox.h"
#include "device_agent/visit/batch.h"
#include "device_agent/visit/guarded_memory.h"
#include "device_agent/visit/result_memory.h"
#include "device_agent/visit/task.h"

namespace hone::agent {

// A kernel with its own packed buffers and workspace, and with the session's inputs and outputs. A workspace does not
// begin as zeros, because it does not in a model. After an error of any call the process must end, except as noted.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  // Runs the kernel's `prepare` launches. Call it once, first. kResourceExhausted: not enough memory; the process may
  // continue without this kernel.
  virtual absl::Status Prepare() = 0;
  // Runs the kernel's `main` launches with the sizes of that point of the batch, and waits for their end.
  virtual absl::Status CallAt(size_t point) = 0;
  // Returns the mean seconds of one of `calls` (at least 1) calls in a row, on constants as cold as the batch asks for.
  // A call is one at every point of the batch. The outputs are invalid afterwards.
  virtual absl::StatusOr<double> Time(int64_t calls) = 0;
  // Copies into the result memory the guard zones of every buffer that the kernel may write, and on a device that
  // cannot protect inputs also those of the inputs.
  virtual absl::Status StoreGuards(ResultMemory& result_memory) = 0;
  // The failure if the kernel has changed an input on a device that cannot protect inputs; nullopt otherwise.
  virtual absl::StatusOr<std::optional<VisitFailure>> FindChangedInput() = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  // Finds or builds the kernel's code and allocates its buffers. It runs no launch, except where a driver compiles at
  // the first launch: there each launch runs once, on arbitrary data (not for a reference). The session must outlive
  // the kernel. kNotFound, kInvalidArgument: the code is missing, or this device cannot run it. kResourceExhausted: not
  // enough memory. After these the session can be used. After other errors, such as kDeadlineExceeded for a launch that
  // does not end, the process must end.
  virtual absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(const VisitKernel& kernel) = 0;
  virtual absl::Status ClearOutputs() = 0;  // fills them with bytes of 0xff
  // Copies the output buffer of that index in the batch to `to`, which has the same size.
  virtual absl::Status CopyOutput(int buffer, std::span<char> to) = 0;
  // Returns the seconds of a fixed piece of work on all units that kernels use, the same in every build of the agent.
  // It shows when the device itself becomes slower.
  virtual absl::StatusOr<double> TimeReference() = 0;
};

struct SessionOptions {
  const VisitBatch* batch = nullptr;  // must outlive the session, like all pointers here
  int artifact_fd = -1;               // batch->artifact as a file
  const char* data = nullptr;         // inputs and constants, where ComputeDataLayout puts them
  int64_t memory_limit = 0;           // bytes; 0 for none
  SessionPurpose purpose = SessionPurpose::kReference;
  RegionTable* regions = nullptr;  // guarded buffers are added here, so that a fault names the buffer
  std::span<char> cold_numbers;  // replace constants in timed calls (cold_numbers.h); read-only; empty: constants stay
};

// A device whose driver runs in this process.
class StartedDevice {
 public:
  virtual ~StartedDevice() = default;
  // Call it once. The error says why the batch cannot be measured.
  virtual absl::StatusOr<std::unique_ptr<Session>> Open(const SessionOptions& options) = 0;
};

// Its constructor must not load a driver, because the launcher holds a Device and forks.
class Device {
 public:
  virtual ~Device() = default;

  // Called in the agent. Unique in the agent: "cpu".
  virtual std::string id() const = 0;
  // kUnavailable: this machine has no device of this kind; the text says why. kNotFound: it has, but not this one.
  virtual absl::StatusOr<DeviceFingerprint> Fingerprint() = 0;
  // The CPUs on which its kernels, or the threads that launch them, run; empty: any.
  virtual std::vector<int> cpus() const { return {}; }
  // Measures the device; a CPU with up to `threads` threads. Nothing else should run on it.
  virtual SelfTestResult SelfTest(int threads) = 0;

  // Called in the agent, because the sandbox hides the sensors.
  virtual Sensors ReadSensors() const = 0;
  // Whether the sensors must also be read during a visit, because the device idles as soon as the visit ends. False for
  // CPUs, where reading takes time from kernels.
  virtual bool ReadsSensorsInVisits() const { return false; }

  // Called in the launcher.
  virtual SandboxPolicy sandbox() const = 0;
  // The longest time that Load may take, compiling included.
  virtual double load_seconds() const = 0;
  // The number of processes that may compile kernels in parallel before the first is timed; 0: Load compiles nothing.
  virtual int BuilderProcessesMax() const = 0;
  // Whether the batch seems to contain all code that Load would compile. The driver may still reject that code.
  virtual bool IsBuilt(const VisitBatch& batch) const = 0;

  // Called in a child that is confined by sandbox() and runs packages instead. Sets the environment of the driver,
  // which the runtime then starts itself. threads: of a device that runs on the host's CPUs; 0 for all.
  virtual void SetDriverEnvironment(int /*threads*/) const {}

  // Called in a child that is confined by sandbox(). Starts the driver before the batch is known; only the batch's
  // number of threads is. The error says why nothing can be measured.
  virtual absl::StatusOr<std::unique_ptr<StartedDevice>> Start(int threads) const = 0;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_DEVICE_H_
