// SPDX-License-Identifier: Apache-2.0
// Batches of candidates compiled by child processes, one per core: objects compiled side by side, then linked into one
// artifact per batch (a shared object; for OpenCL the sources).
//
// A worker that crashes or exceeds the time is the failure of the candidate it had at hand; it is replaced, and the
// others go on. A worker that never began with a candidate says nothing of it. Start with BuildPool::Build.
// Thread-safe: several batches may be under way at once.
#ifndef HONE_TUNER_BUILD_POOL_H_
#define HONE_TUNER_BUILD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tuner/build_message.h"
#include "tuner/build_queue.h"

namespace hone::tuner {

struct BuildOptions {
  // Program and arguments of a worker; "--build-worker=FD" is added.
  std::vector<std::string> command = {"/proc/self/exe"};
  int workers = 0;  // 0: one per CPU
  absl::Duration compile_timeout = absl::Seconds(20);
  // So long is tried again what no worker can begin with: a machine may be short of processes or memory for a while.
  absl::Duration start_patience = absl::Seconds(30);
};

struct BuildJob {
  std::string workload, target;        // texts
  std::vector<std::string> schedules;  // one per candidate
  BuildOwner owner = {};
  // Whether the batch is of no use any more; asked several times a second by the thread that waits for it.
  std::function<bool()> over = nullptr;
};

struct BuiltCandidate {
  bool ok = false;
  bool tried = true;       // else nothing is known of it: no worker began with it
  KernelInterface kernel;  // if ok
  CodeRange code;          // of the artifact, if ok
  std::string drawback;    // why it is not worth being launched although it is ok; may be empty
  BuildFailure failure = BuildFailure::kCompileError;
  std::string text;  // why not
};

struct BuiltBatch {
  std::string artifact;  // the code of all that compiled, and of the reference kernel
  KernelInterface reference;
  CodeRange reference_code;
  std::vector<BuiltCandidate> candidates;
  double seconds = 0;  // of all workers together, waiting for the host's lock not counted
};

// Reference kernels that a pool keeps at a time, the latest ones: more than the workloads of a few large models.
inline constexpr int kKeptReferences = 256;

class BuildPool {
 public:
  explicit BuildPool(BuildOptions options);
  ~BuildPool();  // waits for what is under way
  BuildPool(const BuildPool&) = delete;
  BuildPool& operator=(const BuildPool&) = delete;

  // Blocks until all is built. Internal: the reference kernel was not compiled, or linking failed. Unavailable: no
  // worker began with any candidate. Cancelled: the job was over; what is queued of it is not built, what is begun ends
  // by itself.
  absl::StatusOr<BuiltBatch> Build(const BuildJob& job);

  int workers() const { return static_cast<int>(threads_.size()); }

 private:
  class Worker;
  using Flag = std::shared_ptr<const std::atomic<bool>>;

  absl::StatusOr<BuiltBatch> CompileAndLink(const BuildJob& job, const Flag& unwanted);
  std::future<BuildReply> Submit(BuildRequest request, const BuildOwner& owner, Flag unwanted);
  // reply: why a worker could not begin with it. Another one may be better off, or this one later.
  void TryAgain(BuildTask task, BuildReply reply);
  // *seconds: of a worker, 0 where it was compiled before.
  absl::StatusOr<BuildReply> Reference(const BuildJob& job, double* seconds);
  void ForgetReference(std::string key);
  void Run();  // of one thread with one worker

  const BuildOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  BuildQueue queue_;
  std::map<std::string, std::shared_future<BuildReply>> references_;  // by workload and target
  std::deque<std::string> reference_keys_;                            // oldest first
  std::vector<std::thread> threads_;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUILD_POOL_H_
