// SPDX-License-Identifier: Apache-2.0
// A visit's child on the CPU: the artifact as a shared object in this process, guarded buffers, a thread pool.
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
  // What says what packed buffers hold: the functions that fill them, and their sizes.
  using PackedKey = std::pair<std::vector<HoneKernel>, std::vector<int64_t>>;

  explicit CpuSession(const SessionOptions& options)
      : options_(options), batch_(*options.batch), cold_constants_(options.cold_numbers) {}
  absl::Status LoadArtifact();
  absl::Status MakeBuffers();
  absl::StatusOr<HoneKernel> Find(const KernelLaunch& launch) const;
  // Those of a kernel that is loaded, or new ones.
  absl::StatusOr<std::shared_ptr<Packed>> PackedOf(const PackedKey& key);
  // By all threads, as the kernels before this one do in a model, in whose memory outputs lie, too: what a core did not
  // write last, it has to fetch, to be read or to be written.
  void WriteTimedBuffers();

  const SessionOptions options_;
  const VisitBatch& batch_;
  std::vector<GuardedBuffer> shared_;  // the workload's own buffers, in the batch's order
  // What timed calls read, by place among a kernel's buffers: copies of the inputs that can be written and have pages
  // around them. Verified calls read the ones that are guarded.
  std::vector<std::pair<size_t, GuardedBuffer>> timed_inputs_;
  std::map<PackedKey, std::weak_ptr<Packed>> packed_;
  ColdConstants cold_constants_;
  std::unique_ptr<ThreadPool> pool_;
  void* artifact_ = nullptr;  // never unloaded: the process ends with the session
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_DEVICES_CPU_CPU_SESSION_H_
