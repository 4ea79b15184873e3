// The inside of a measuring child: the loaded artifact, guarded buffers, calls of kernels, and what to say when one of
// them goes wrong. The order of the work is visit_child.cc's.
#ifndef HONE_DEVICE_AGENT_KERNEL_HOST_H_
#define HONE_DEVICE_AGENT_KERNEL_HOST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/kernel_abi.h"
#include "base/thread_pool.h"
#include "device_agent/cold_constants.h"
#include "device_agent/guarded_memory.h"
#include "device_agent/visit_child.h"
#include "device_agent/visit_message.h"

namespace hone::agent {

// Says things to the launcher. Signal handlers use it too: no allocation, no lock.
class Voice {
 public:
  explicit Voice(int channel) : channel_(channel) {}
  void Begin(int candidate, double limit_seconds);
  void Failed(int candidate, v1::FailureKind kind, const std::string& text);
  void Times(int candidate, int64_t calls, bool interleaved, const std::vector<double>& seconds, double max_error);
  void Reference(const std::vector<double>& seconds);
  void Done();
  void Send(const VisitMessage& message) const;
  int candidate() const { return candidate_; }

 private:
  int channel_;
  int candidate_ = -1;
};

// A kernel ready to be called: its own packed buffers and workspace, and the shared inputs and outputs.
struct LoadedKernel {
  std::vector<GuardedBuffer> packed;
  std::optional<GuardedBuffer> workspace;
  std::vector<void*> buffers;
  // Places and sizes of the float constants, packed ones too, that repeats find cold; may be empty.
  std::vector<std::pair<size_t, int64_t>> cold;
  HoneKernel main = nullptr;
  void* workspace_pointer = nullptr;
};

class KernelHost {
 public:
  explicit KernelHost(const ChildTask& task);

  // Confines the process, loads the artifact, sets up inputs (copied from the task's data, read-only from then on) and
  // outputs, starts threads. The error says why the batch cannot be measured.
  absl::Status SetUp();

  // For kernels that will be timed; before they are loaded. kResourceExhausted: the memory limit.
  absl::Status MakeColdConstants();

  // Finds the kernel, makes its buffers and runs its prepare function.
  absl::StatusOr<LoadedKernel> Load(const v1::Kernel& kernel);
  void Call(const LoadedKernel& kernel) {
    kernel.main(kernel.buffers.data(), kernel.workspace_pointer, pool_->parallel());
  }
  // Mean seconds of one of `calls` calls in a row, on cold constants: outputs are worthless afterwards.
  double Time(const LoadedKernel& kernel, int64_t calls);

  void ClearOutputs();  // to bytes of 0xff
  // Which buffer's surroundings were written, in words; "" for none.
  std::string BrokenCanary(const LoadedKernel& kernel) const;
  const char* output(int buffer) const { return shared_[buffer].data(); }
  Voice& voice() { return voice_; }

 private:
  absl::Status LoadArtifact();
  void FindCold(const v1::Kernel& kernel, LoadedKernel& loaded) const;
  void CatchFaults();

  const ChildTask& task_;
  Voice voice_;
  RegionTable regions_;
  std::vector<GuardedBuffer> shared_;  // the workload's own buffers, in the batch's order
  std::optional<ColdConstants> cold_constants_;
  std::unique_ptr<ThreadPool> pool_;
  void* artifact_ = nullptr;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_KERNEL_HOST_H_
