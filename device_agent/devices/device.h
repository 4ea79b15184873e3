// SPDX-License-Identifier: Apache-2.0
// What kernels are measured on. Two faces: Device, which the agent and the launcher hold, says what it is and what its
// kernels need; Session, which only a visit's child opens, runs kernels. What is between them takes a driver a second,
// and needs no batch: StartedDevice.
//
// A new kind of device implements the four classes here in a folder of its own, has a line in make_device.cc, and is
// held to tests/conformance/device. Not here: the order of a visit (child/race.h) and who is to blame
// (launcher/visit_runner.h), which are the same for all.
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

// A kernel with its own packed buffers and workspace, and the session's inputs and outputs. A workspace does not begin
// as zeros, since it does not in a model. An error of any call means that the process is of no use any more.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  // Runs the launches of `prepare`, once, before all else. kResourceExhausted: there was no memory; the process lives
  // on without this kernel.
  virtual absl::Status Prepare() = 0;
  // Runs the launches of `main` and waits for their end.
  virtual absl::Status Call() = 0;
  // Mean seconds of one of `calls` calls in a row, on constants as cold as the batch asks for: outputs are worthless
  // afterwards. `calls` is at least 1.
  virtual absl::StatusOr<double> Time(int64_t calls) = 0;
  // Shows what lies around every buffer that it may write, and around those that it could (visit/result_memory.h).
  virtual absl::Status StoreGuards(ResultMemory& result_memory) = 0;
  // Whether it has changed an input, where nothing keeps it from that; how, in words.
  virtual absl::StatusOr<std::optional<VisitFailure>> ChangedInput() = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  // Finds or builds the kernel's code and makes its buffers. Runs none of it, but where a driver builds at the first
  // launch: there every launch is run once, on whatever its buffers hold (not of a reference). The session must outlive
  // the kernel. kNotFound, kInvalidArgument: its code is not there, or this device cannot run it. kResourceExhausted:
  // it wants more memory than there is. The session lives on after these; after others, as kDeadlineExceeded for a
  // launch that does not end, the process is of no use.
  virtual absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(const VisitKernel& kernel) = 0;
  virtual absl::Status ClearOutputs() = 0;  // to bytes of 0xff
  // What the batch's output buffer of that index holds, to `to`, which is as large.
  virtual absl::Status CopyOutput(int buffer, std::span<char> to) = 0;
  // Seconds of a fixed piece of work, on all that kernels run on, the same in every build of the agent: shows when the
  // device itself drifts.
  virtual absl::StatusOr<double> TimeReference() = 0;
};

struct SessionOptions {
  const VisitBatch* batch = nullptr;  // must outlive the session, like all here
  int artifact_fd = -1;               // batch->artifact as a file
  const char* data = nullptr;         // inputs and constants, where LayOut puts them
  int64_t memory_limit = 0;           // bytes; 0 for none
  SessionPurpose purpose = SessionPurpose::kReference;
  RegionTable* regions = nullptr;  // guarded buffers are entered here, so that a fault can be explained
  std::span<char> cold_numbers;    // that come round in place of constants (cold_numbers.h); read-only, may be empty
};

// A device whose driver runs in this process.
class StartedDevice {
 public:
  virtual ~StartedDevice() = default;
  // Once. The error says why the batch cannot be measured.
  virtual absl::StatusOr<std::unique_ptr<Session>> Open(const SessionOptions& options) = 0;
};

// Its constructor touches no driver: the launcher, which forks, holds one too.
class Device {
 public:
  virtual ~Device() = default;

  // In the agent. id: unique in the agent ("cpu").
  virtual std::string id() const = 0;
  // kUnavailable: this machine has no such device, and why. kNotFound: it has others.
  virtual absl::StatusOr<DeviceFingerprint> Fingerprint() = 0;
  // The CPUs that its kernels run on, or are handed over from; empty: any.
  virtual std::vector<int> cpus() const { return {}; }
  // Measures it, with up to `threads` threads where it has such; nothing else should run.
  virtual SelfTestResult SelfTest(int threads) = 0;

  // In the agent, where the system shows them.
  virtual Sensors ReadSensors() const = 0;
  // Whether that is to be done all through a visit, too, since the device idles as soon as it has ended. Not of CPUs:
  // it takes time from what runs there.
  virtual bool ReadsSensorsInVisits() const { return false; }

  // In the launcher.
  virtual SandboxPolicy sandbox() const = 0;
  // Longest that Load may take, building included.
  virtual double load_seconds() const = 0;
  // Processes that may build kernels side by side before any is timed; 0: Load builds nothing.
  virtual int Builders() const = 0;
  // Whether the batch brings all that Load would build, as far as can be seen: a driver need not take it.
  virtual bool IsBuilt(const VisitBatch& batch) const = 0;

  // In a visit's child, confined as sandbox() says, which may not know its batch yet, but for its `threads`. The error
  // says why nothing can be measured.
  virtual absl::StatusOr<std::unique_ptr<StartedDevice>> Start(int threads) const = 0;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_DEVICE_H_
