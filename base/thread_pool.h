// SPDX-License-Identifier: Apache-2.0
// The thread pool under every kernel, in the runtime that ships with a model and in the agent that measures:
// one implementation, so that what was tuned is what runs. Nothing but the C++ library and pthreads.
//
// Persistent workers on the CPUs the process may use, the fastest cores first (base/cpu_cores.h); after work they spin
// briefly on one epoch counter, then sleep on a futex. A pool with a thread for every core holds each worker on a core
// of its own: none stays idle, however many such pools there are. A smaller one lets the system choose among the cores,
// so that pools of one process or of several find those that are idle. Each thread has an equal portion of every loop,
// one thread the first iterations, the next one those that follow: what a kernel wrote is in the cache of the core that
// reads it in the next kernel, where both go through a tensor in order. Who is done early takes of the others'
// portions. The calling thread works too, so threads == 1 starts no thread at all; where a loop finds it on the CPU on
// which a worker is held, it moves to another. Workers take none of the signals that are sent to the process. One pool
// runs one loop at a time; calls from several threads take turns.
#ifndef HONE_BASE_THREAD_POOL_H_
#define HONE_BASE_THREAD_POOL_H_

#include <limits>
#include <memory>
#include <vector>

#include "base/cpu_cores.h"
#include "base/kernel_abi.h"

namespace hone {

// That a kernel may be compiled for, and a device says it has.
inline constexpr int kMostThreads = 1024;

class ThreadPool {
 public:
  // threads >= 1, the caller included; 0 means one for each core of the fastest kind that the process may run on, or as
  // many as its control groups leave it CPUs, if these are fewer. Where the system gives fewer threads, the pool has
  // those; without memory for them std::bad_alloc is thrown.
  explicit ThreadPool(int threads);
  // On a machine of these groups of cores, of which the process may use so many CPUs the whole time, for tests.
  ThreadPool(int threads, const std::vector<CoreGroup>& groups, double cpus = std::numeric_limits<double>::infinity());
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  HoneParallel* parallel();  // what kernels take; owned by the pool
  // A child that was forked has none of its parent's workers. Before the first loop there; from then on, as with
  // threads == 1, the caller works alone. Without it a loop may wait for ever.
  void ForgetWorkersOfParent();
  // Where the machine has slower cores than the workers': the CPUs on which the caller keeps up with them; else empty.
  const std::vector<int>& cpus_of_caller() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone

#endif  // HONE_BASE_THREAD_POOL_H_
