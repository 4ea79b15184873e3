// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/control_groups.h"
#include "base/signals_blocked.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace hone {
namespace {

// The time that an idle worker spins before it sleeps. It is long enough to bridge the gap between two kernels of a
// model, and short enough not to show up as load.
constexpr auto kSpin = std::chrono::microseconds(50);
// Chunks per thread in a loop: enough to balance unequal cores, few enough to keep contention for the counters low.
constexpr int64_t kChunksPerThread = 8;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#elif defined(__arm__)
  asm volatile("yield" ::: "memory");
#endif
}

int NumberOfCpus(const std::vector<CoreGroup>& groups) {
  size_t count = 0;
  for (const CoreGroup& group : groups) count += group.cores.size() + group.siblings.size();
  return static_cast<int>(count);
}

// The CPUs that each thread may run on, the caller's first. Threads first take one CPU of each core, the fastest group
// first, and then the further hardware threads of the cores in the same order. If there are enough threads for all CPUs
// of a step, each thread is pinned to one CPU. Otherwise the threads may run on any CPU of the step, because other
// pools and processes use the same CPUs and only the system knows which are idle. The very first CPU is then left out:
// it belongs to the caller, which the agent pins there.
std::vector<std::vector<int>> PlacesOf(size_t threads, const std::vector<CoreGroup>& groups) {
  std::vector<std::vector<int>> places;
  for (const auto kind : {&CoreGroup::cores, &CoreGroup::siblings}) {
    for (const CoreGroup& group : groups) {
      std::vector<int> cpus = group.*kind;
      const size_t left = threads - places.size();
      if (left >= cpus.size()) {
        for (const int cpu : cpus) places.push_back({cpu});
      } else {
        if (places.empty()) cpus.erase(cpus.begin());
        places.insert(places.end(), left, cpus);
      }
    }
  }
  return places;
}

}  // namespace

// The state shared by the caller and the workers, and the protocol that opens and closes a loop. `epoch` is odd while a
// loop is open. A worker enters by incrementing `inside` and then reading `epoch`. The caller closes the loop by making
// `epoch` even and then waiting until `inside` is 0. Both sides write before they read, with sequential consistency, so
// either the worker sees the loop closed or the caller waits for it. A worker that sleeps through a loop never delays
// it.
struct ThreadPool::State {
  // The iterations of one thread's portion that have not started: [next, end). Any thread may take a chunk from the
  // front.
  struct alignas(64) Portion {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  HoneParallel parallel;  // must be the first member: ParallelFor casts its address to State
  std::mutex turn;        // held while a loop runs, so that one loop runs at a time
  std::vector<std::thread> workers;
  const pid_t process = getpid();        // the process that started the workers; another one is a forked child
  std::vector<int> caller;               // CPUs as fast as the workers'; empty = all CPUs are
  std::vector<std::vector<int>> places;  // by thread: its CPUs, from PlacesOf; empty = any CPU
  std::vector<bool> pinned;              // by CPU: whether a worker is pinned to it; workers never read it
  bool spin = true;
  std::atomic<bool> stop{false};

  // The current loop. Written only by the caller, while the loop is closed and `inside` is 0.
  HoneTask task = nullptr;
  void* closure = nullptr;
  int64_t chunk = 1;
  std::vector<Portion> portions;  // by thread, the caller's first

  alignas(64) std::atomic<uint32_t> epoch{0};
  alignas(64) std::atomic<int> inside{0};

  // Stops and joins the workers. This is in State and not in ThreadPool, so that it also runs if memory runs out in the
  // constructor of ThreadPool after some workers have started.
  ~State() {
    ResetAfterFork();
    stop.store(true);
    epoch.fetch_add(2);
    epoch.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void TakeChunks(Portion& portion) {
    // A finished portion is only read: a write would take the cache line from other threads that read it.
    while (portion.next.load(std::memory_order_relaxed) < portion.end) {
      const int64_t begin = portion.next.fetch_add(chunk, std::memory_order_relaxed);
      const int64_t end = std::min(begin + chunk, portion.end);
      for (int64_t i = begin; i < end; ++i) task(closure, i);
    }
  }

  // Takes chunks of the thread's own portion, then of the portions after it, in a circle.
  void TakeChunks(size_t thread) {
    for (size_t i = 0; i < portions.size(); ++i) TakeChunks(portions[(thread + i) % portions.size()]);
  }

  void Divide(int64_t count) {
    const auto threads = static_cast<int64_t>(portions.size());
    chunk = std::max<int64_t>(1, count / (kChunksPerThread * threads));
    for (int64_t t = 0; t < threads; ++t) {
      portions[t].next.store(count * t / threads, std::memory_order_relaxed);
      portions[t].end = count * (t + 1) / threads;
    }
  }

  // Returns when the epoch is no longer `seen`.
  void AwaitChange(uint32_t seen) {
    if (spin) {
      const auto deadline = std::chrono::steady_clock::now() + kSpin;
      do {
        for (int i = 0; i < 32; ++i) {
          if (epoch.load(std::memory_order_acquire) != seen) return;
          Pause();
        }
      } while (std::chrono::steady_clock::now() < deadline);
    }
    epoch.wait(seen, std::memory_order_acquire);
  }

  void Work(size_t thread) {
    SetCpuAffinity(places[thread]);
    uint32_t seen = 0;
    for (;;) {
      AwaitChange(seen);
      inside.fetch_add(1);
      seen = epoch.load();
      if (stop.load()) {
        inside.fetch_sub(1);
        return;
      }
      if (seen & 1) TakeChunks(thread);
      inside.fetch_sub(1);
    }
  }

  // In a forked child, drops the parent's workers. Their std::thread objects are leaked, because they can be neither
  // joined nor destroyed there.
  void ResetAfterFork() {
    if (workers.empty() || process == getpid()) return;
    static_cast<void>(new std::vector<std::thread>(std::move(workers)));
    workers.clear();
  }

  void MarkPinned(size_t thread) {
    if (places[thread].size() != 1) return;
    const int cpu = places[thread].front();
    pinned.resize(std::max(pinned.size(), static_cast<size_t>(cpu) + 1));
    pinned[cpu] = true;
  }
  bool IsPinned(int cpu) const { return cpu >= 0 && static_cast<size_t>(cpu) < pinned.size() && pinned[cpu]; }

  // Moves the caller to another CPU if it runs on the CPU of a pinned worker. The worker cannot leave that CPU, so both
  // would share it while another CPU is idle. The caller's allowed CPUs are restored at once; the move is only a push.
  // Finding the current CPU is a system call on some systems, so it is skipped if no worker is pinned. Allocates
  // nothing, because it is part of a run.
  void LeaveCpuToWorker() const {
#ifdef __linux__
    if (pinned.empty() || !IsPinned(sched_getcpu())) return;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    cpu_set_t others = allowed;
    for (size_t cpu = 0; cpu < pinned.size(); ++cpu) {
      if (pinned[cpu]) CPU_CLR(cpu, &others);
    }
    if (CPU_COUNT(&others) == 0) return;
    if (sched_setaffinity(0, sizeof(others), &others) == 0) sched_setaffinity(0, sizeof(allowed), &allowed);
#endif
  }

  void Run(HoneTask run_task, void* run_closure, int64_t run_count) {
    LeaveCpuToWorker();
    const std::lock_guard lock(turn);
    task = run_task;
    closure = run_closure;
    Divide(run_count);
    epoch.fetch_add(1);
    epoch.notify_all();
    TakeChunks(size_t{0});
    epoch.fetch_add(1);
    for (int spins = 0; inside.load() != 0; ++spins) {
      // A worker that was preempted in the middle of a chunk may need this CPU to continue.
      if (spins < 4096) {
        Pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

  static void ParallelFor(HoneParallel* self, HoneTask task, void* closure, int64_t count) {
    auto* state = reinterpret_cast<State*>(self);
    if (state->workers.empty() || count <= 1) {
      for (int64_t i = 0; i < count; ++i) task(closure, i);
      return;
    }
    state->Run(task, closure, count);
  }
};

ThreadPool::ThreadPool(int threads)
    : ThreadPool(threads, FindCoreGroups(UsableCpus()),
                 threads > 0 ? std::numeric_limits<double>::infinity() : ProcessCpuQuota()) {}

ThreadPool::ThreadPool(int threads, const std::vector<CoreGroup>& groups, double cpus)
    : state_(std::make_unique<State>()) {
  static_assert(std::is_standard_layout_v<HoneParallel>);
  state_->parallel.parallel_for = &State::ParallelFor;
  const int available =
      groups.empty() ? std::max(1, static_cast<int>(std::thread::hardware_concurrency())) : NumberOfCpus(groups);
  if (threads <= 0) threads = groups.empty() ? available : LoopThreads(groups.front(), cpus);
  if (groups.size() > 1 && threads <= static_cast<int>(groups.front().cores.size())) {
    state_->caller = groups.front().Cpus();
  }
  const auto count = static_cast<size_t>(threads);
  // With more threads than CPUs, a spinning or pinned thread could keep a thread that has work off a CPU.
  state_->spin = threads <= available;
  if (state_->spin) state_->places = PlacesOf(count, groups);
  state_->places.resize(count);
  state_->portions = std::vector<State::Portion>(count);
  [[maybe_unused]] const SignalsBlocked blocked;
  for (size_t thread = 1; thread < count; ++thread) {
    try {
      state_->workers.emplace_back([state = state_.get(), thread] { state->Work(thread); });
    } catch (const std::system_error&) {
      break;  // the system grants no more threads: the pool uses those that have started
    }
    state_->MarkPinned(thread);
  }
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::ResetAfterFork() { state_->ResetAfterFork(); }

int ThreadPool::threads() const {
  state_->ResetAfterFork();
  return static_cast<int>(state_->workers.size()) + 1;
}

const std::vector<int>& ThreadPool::caller_cpus() const { return state_->caller; }

HoneParallel* ThreadPool::parallel() { return &state_->parallel; }

}  // namespace hone
