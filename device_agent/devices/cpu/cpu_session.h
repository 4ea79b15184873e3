// SPDX-License-Identifier: Apache-2.0
// A session on the CPU, in a child: loads the artifact as a shared object, with guarded buffers and a thread pool.
#ifndef HONE_DEVICE_AGENT_DEVICES_CPU_CPU_SESSION_H_
#define HONE_DEVICE_AGENT_DEVICES_CPU_CPU_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/kernel_abi.h"
#include "base/thread_pool.h"
#include "device_agent/devices/cpu/cold_constants.h"
#include "device_agent/devices/device.h"
#include "device_agent/visit/guarded_memory.h"

namespace hone::agent {

class CpuSession : public Session {
 public:
  // kInvalidArgument: the artifact does not load. kResourceExhausted: memory or threads.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const SessionOptions& options);

  absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(const VisitKernel& kernel) override;
  absl::Status ClearOutputs() override;
  absl::Status CopyOutput(int buffer, std::span<char> to) override;
  absl::StatusOr<double> TimeReference() override;

 private:
  class Kernel;
  struct Packed;
  // Identifies the contents of packed buffers: the functions that fill them, and their sizes.
  using PackedKey = std::pair<std::vector<HoneKernel>, std::vector<int64_t>>;

  explicit CpuSession(const SessionOptions& options)
      : options_(options), batch_(*options.batch), cold_constants_(options.cold_numbers) {}
  absl::Status LoadArtifact();
  absl::Status MakeBuffers();
  absl::StatusOr<HoneKernel> Find(const KernelLaunch& launch) const;
  // The packed buffers of a loaded kernel with that key, or new ones.
  absl::StatusOr<std::shared_ptr<Packed>> PackedOf(const PackedKey& key);
  // Has all threads write the inputs and outputs of timed calls, as the earlier kernels of a model do. A core must
  // fetch memory that another core wrote last, whether it reads or writes it.
  void WriteTimedBuffers();

  const SessionOptions options_;
  const VisitBatch& batch_;
  std::vector<GuardedBuffer> shared_;  // the workload's own buffers, in the batch's order
  // The inputs of timed calls, by index among a kernel's buffers: writable copies whose guard areas can be read.
  // Verified calls read the guarded inputs.
  std::vector<std::pair<size_t, GuardedBuffer>> timed_inputs_;
  std::vector<GuardedBuffer> sizes_;  // the sizes of each point; empty if the kernels have no open sizes
  std::map<PackedKey, std::weak_ptr<Packed>> packed_;
  ColdConstants cold_constants_;
  std::unique_ptr<ThreadPool> pool_;
  void* artifact_ = nullptr;  // never unloaded: the process ends with the session
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_CPU_SESSION_H_
