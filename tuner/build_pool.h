// SPDX-License-Identifier: Apache-2.0
// A pool of child processes, one per core, that compiles batches of candidates. Objects are compiled in parallel and
// then linked into one artifact per batch: a shared object, or for OpenCL the sources.
//
// If a worker crashes or exceeds the time limit, its current candidate has failed; the worker is replaced and the other
// candidates are not affected. If a worker fails before it begins, the candidate is tried again. Thread-safe: several
// batches may be under way at once. Start with BuildPool::Build.
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
  // For how long a request is tried again that no worker can begin, because the machine is short of processes or
  // memory.
  absl::Duration start_timeout = absl::Seconds(30);
};

// A batch to build.
struct BuildJob {
  std::string workload, target;        // texts
  std::vector<std::string> schedules;  // one per candidate
  BuildOwner owner = {};
  // Whether the batch is of no use any more. The thread in Build asks it several times a second. Null: never.
  std::function<bool()> over = nullptr;
};

struct BuiltCandidate {
  bool ok = false;
  bool tried = true;       // false: no worker began with it, so nothing is known about it
  KernelInterface kernel;  // if ok
  CodeRange code;          // if ok: its part of the artifact
  std::string drawback;    // why it is not worth launching although it is ok; empty: no reason
  FailureKind failure = FailureKind::kCompileError;  // if not ok, but tried
  std::string text;                                  // why it is not ok
};

// The result of a build; candidates are in the order of BuildJob::schedules.
struct BuiltBatch {
  std::string artifact;  // code of all compiled candidates and of the reference kernel
  KernelInterface reference;
  CodeRange reference_code;
  std::vector<BuiltCandidate> candidates;
  double seconds = 0;  // sum over all workers, without waiting for the host lock
};

// The number of reference kernels that a pool keeps, the newest ones. A few large models have fewer workloads.
inline constexpr int kReferencesKeptMax = 256;

class BuildPool {
 public:
  explicit BuildPool(BuildOptions options);
  ~BuildPool();  // waits until all submitted requests are answered
  BuildPool(const BuildPool&) = delete;
  BuildPool& operator=(const BuildPool&) = delete;

  // Blocks until the batch is built. Internal: the reference kernel was not compiled, or linking failed. Unavailable:
  // no worker began with any candidate. Cancelled: job.over returned true; queued requests of the job are then dropped,
  // and running ones finish unused.
  absl::StatusOr<BuiltBatch> Build(const BuildJob& job);

  int workers() const { return static_cast<int>(threads_.size()); }

 private:
  class Worker;
  using Flag = std::shared_ptr<const std::atomic<bool>>;

  // Build without the end of the job: the caller sets *unwanted afterwards, which drops queued requests.
  absl::StatusOr<BuiltBatch> CompileAndLink(const BuildJob& job, const Flag& unwanted);
  std::future<BuildReply> Submit(BuildRequest request, const BuildOwner& owner, Flag unwanted);
  // Queues a task again that a worker could not begin, or answers it with `reply`, which says why, if its time is up.
  void TryAgain(BuildTask task, BuildReply reply);
  // The compiled reference kernel of the job's workload. *seconds: what compiling it took; 0: it was compiled before.
  absl::StatusOr<BuildReply> Reference(const BuildJob& job, double* seconds);
  // Removes a reference kernel, so that the next job compiles it again.
  void ForgetReference(std::string key);
  void Run();  // the loop of one thread, which owns one worker

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
