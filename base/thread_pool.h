// SPDX-License-Identifier: Apache-2.0
// The thread pool that runs the parallel loops of every kernel. The runtime that ships with a model and the agent that
// measures share this implementation, so a kernel runs as it was tuned. Needs only the C++ library and pthreads.
//
// Workers are persistent. After a loop they spin briefly on an epoch counter, then sleep on a futex. They use the CPUs
// that the process may use, the fastest cores first (base/cpu_cores.h). A pool with a thread for every core pins each
// worker to its own core, so no core stays idle. A smaller pool lets the system choose among the cores, so that several
// pools, also of several processes, find idle ones.
//
// Each thread has an equal, contiguous portion of every loop, in the order of the threads. If two kernels go through a
// tensor in order, a core therefore reads mostly what it wrote itself, which is still in its cache. A thread that
// finishes early takes chunks of other threads' portions.
//
// The calling thread works too, so threads == 1 starts no worker. A caller that runs on the CPU of a pinned worker
// moves to another CPU. Workers block the signals that are sent to the process. One pool runs one loop at a time; it is
// safe to call from several threads, whose loops then run one after another.
#ifndef HONE_BASE_THREAD_POOL_H_
#define HONE_BASE_THREAD_POOL_H_

#include <limits>
#include <memory>
#include <vector>

#include "base/cpu_cores.h"
#include "base/kernel_abi.h"

namespace hone {

// The largest number of threads that a kernel may be compiled for and that a device may report.
inline constexpr int kThreadsMax = 1024;

class ThreadPool {
 public:
  // threads: at least 1, including the caller. 0 = one for each core of the fastest group that the process may use, but
  // no more than the CPU quota of its control groups. If the system grants fewer threads, the pool has fewer. Throws
  // std::bad_alloc if memory runs out.
  explicit ThreadPool(int threads);
  // For tests: as on a machine with these groups of cores and this CPU quota, in CPUs.
  ThreadPool(int threads, const std::vector<CoreGroup>& groups, double cpus = std::numeric_limits<double>::infinity());
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;       // workers that were started, plus the caller
  HoneParallel* parallel();  // the argument of kernels; owned by the pool
  // Must be called in a forked child before its first loop, because the parent's workers do not exist in the child and
  // a loop would wait for them for ever. From then on the caller works alone, as with threads == 1.
  void ResetAfterFork();
  // The CPUs of the fastest group of cores, if the machine has slower ones and that group has a core for every thread.
  // The caller of a loop should stay on these. Empty otherwise: the caller may run on any CPU.
  const std::vector<int>& caller_cpus() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone

#endif  // HONE_BASE_THREAD_POOL_H_
