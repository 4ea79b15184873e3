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

#ifdef __linux__
#include <sched.h>
#include <signal.h>
#endif

namespace hone {
namespace {

// Long enough to bridge the gap between two kernels of a model, short enough not to be seen as load.
constexpr auto kSpin = std::chrono::microseconds(50);
// Chunks per thread: enough to even out unequal cores, few enough to keep the counters' cache lines quiet.
constexpr int64_t kChunksPerThread = 8;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

int NumberOfCpus(const std::vector<CoreGroup>& groups) {
  size_t count = 0;
  for (const CoreGroup& group : groups) count += group.cores.size() + group.siblings.size();
  return static_cast<int>(count);
}

// The CPUs that each thread may run on, the caller's first. Threads take one of each core, the fastest cores first, and
// further hardware threads of the same cores after all of them. Where there are threads for all CPUs of such a kind,
// each is held on one of its own. Fewer may be on any of them: other pools and other processes choose among the same
// CPUs, and only the system knows which are idle. But the first of all is left to the caller, whom the agent holds
// there.
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

// Threads that are started meanwhile leave the signals sent to the process to the program's own threads, which may wait
// for them. The signals of a thread's own faults come to that thread alone and stay as they are, and so does that of
// profilers, which ask whoever works.
class SignalsBlocked {
#ifdef __linux__
 public:
  SignalsBlocked() {
    sigset_t signals;
    sigfillset(&signals);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      sigdelset(&signals, own);
    }
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
#endif
};

// The CPU that the thread runs on just now; -1 where nobody says.
int CurrentCpu() {
#ifdef __linux__
  return sched_getcpu();
#else
  return -1;
#endif
}

}  // namespace

// How a loop is published and retired. `epoch` is odd while a loop is open. A worker enters by raising `inside` and
// then looking at `epoch`; the caller retires the loop by making `epoch` even and then waiting until `inside` is 0.
// Both sides write before they read, sequentially consistent, so a worker either sees the loop closed or is waited
// for. A worker that slept through a loop never delays it.
struct ThreadPool::State {
  // Of a loop's iterations, those of one thread that nobody has begun: from `next` on, in order, whoever takes them.
  struct alignas(64) Portion {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  HoneParallel parallel;  // first: parallel_for finds the State behind it
  std::mutex turn;        // one loop at a time
  std::vector<std::thread> workers;
  const pid_t process = getpid();        // whose workers they are
  std::vector<int> caller;               // CPUs as fast as the workers'; empty: all are
  std::vector<std::vector<int>> places;  // the CPUs of each thread, as PlacesOf has them; none: any
  std::vector<bool> pinned;              // by CPU: whether a worker is held there; callers alone read it
  bool spin = true;
  std::atomic<bool> stop{false};

  // Written only while the loop is closed and nobody is inside.
  HoneTask task = nullptr;
  void* closure = nullptr;
  int64_t chunk = 1;
  std::vector<Portion> portions;  // the caller's, then those of the workers

  alignas(64) std::atomic<uint32_t> epoch{0};
  alignas(64) std::atomic<int> inside{0};

  // Of the State, not of the pool: also where memory runs out while the pool is being made, workers that have started
  // are told to end.
  ~State() {
    ForgetWorkersOfParent();
    stop.store(true);
    epoch.fetch_add(2);
    epoch.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void TakeChunks(Portion& portion) {
    // What is used up is not written to: its thread may be reading the line.
    while (portion.next.load(std::memory_order_relaxed) < portion.end) {
      const int64_t begin = portion.next.fetch_add(chunk, std::memory_order_relaxed);
      const int64_t end = std::min(begin + chunk, portion.end);
      for (int64_t i = begin; i < end; ++i) task(closure, i);
    }
  }

  // Of its own portion, then of those behind it.
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
    StayOnCpus(places[thread]);
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

  // What is left of the workers in a child that was forked can be neither joined nor destroyed.
  void ForgetWorkersOfParent() {
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

  // A worker that is held on a CPU cannot leave it. A caller that the system has put there, too, would take turns with
  // it while another CPU is idle, so it goes; afterwards it may run where it could before. Some systems ask the kernel
  // for the CPU, so it is asked for only where it matters.
  void LeaveCpuToWorker() const {
    if (pinned.empty() || !IsPinned(CurrentCpu())) return;
    std::vector<int> others = UsableCpus();
    std::erase_if(others, [this](int cpu) { return IsPinned(cpu); });
    const OnCpus moved(others);
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
      // A worker that lost its CPU in the middle of a chunk needs ours to go on.
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
                 threads > 0 ? std::numeric_limits<double>::infinity() : HostCpus()) {}

ThreadPool::ThreadPool(int threads, const std::vector<CoreGroup>& groups, double cpus)
    : state_(std::make_unique<State>()) {
  static_assert(std::is_standard_layout_v<HoneParallel>);
  state_->parallel.parallel_for = &State::ParallelFor;
  const int available =
      groups.empty() ? std::max(1, static_cast<int>(std::thread::hardware_concurrency())) : NumberOfCpus(groups);
  if (threads <= 0) threads = groups.empty() ? available : ThreadsOf(groups.front(), cpus);
  if (groups.size() > 1 && threads <= static_cast<int>(groups.front().cores.size())) {
    state_->caller = groups.front().Cpus();
  }
  const auto count = static_cast<size_t>(threads);
  // With more threads than CPUs, spinning or pinning would keep a thread that has work off its CPU.
  state_->spin = threads <= available;
  if (state_->spin) state_->places = PlacesOf(count, groups);
  state_->places.resize(count);
  state_->portions = std::vector<State::Portion>(count);
  [[maybe_unused]] const SignalsBlocked blocked;
  for (size_t thread = 1; thread < count; ++thread) {
    try {
      state_->workers.emplace_back([state = state_.get(), thread] { state->Work(thread); });
    } catch (const std::system_error&) {
      break;  // the system gives no more threads: work with those there are
    }
    state_->MarkPinned(thread);
  }
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::ForgetWorkersOfParent() { state_->ForgetWorkersOfParent(); }

int ThreadPool::threads() const {
  state_->ForgetWorkersOfParent();
  return static_cast<int>(state_->workers.size()) + 1;
}

const std::vector<int>& ThreadPool::cpus_of_caller() const { return state_->caller; }

HoneParallel* ThreadPool::parallel() { return &state_->parallel; }

}  // namespace hone
